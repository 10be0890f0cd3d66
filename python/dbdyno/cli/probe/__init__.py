"""`dbdyno probe`: latency of a database's I/O on real devices, one file per command."""

from __future__ import annotations

import click

from dbdyno.cli.main import LazyGroup

ROWS = {
    "redo": ("dbdyno.cli.probe.redo", "Write as a log writer does, to one path or two."),
    "flash": ("dbdyno.cli.probe.flash", "Read and overwrite a file or device until it is steady."),
    "recover": ("dbdyno.cli.probe.recover", "Check what the files of a killed probe contain."),
}


@click.group("probe", cls=LazyGroup, rows=ROWS)
def command() -> None:
    """Measure the latency of a database's I/O on real files; every latency is kept as evidence."""
