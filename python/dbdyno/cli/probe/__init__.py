"""`dbdyno probe`: latency of a database's I/O on real devices, one file per command."""

from __future__ import annotations

from typing import ClassVar

import click

from dbdyno.cli.main import LazyGroup

ROWS = {
    "redo": ("dbdyno.cli.probe.redo", "Write as a log writer does, to one path or two."),
    "flash": ("dbdyno.cli.probe.flash", "Read and overwrite a file or device until it is steady."),
    "recover": ("dbdyno.cli.probe.recover", "What the files of a killed probe hold."),
}


class _ProbeGroup(LazyGroup):
    rows: ClassVar[dict[str, tuple[str, str]]] = ROWS


@click.group("probe", cls=_ProbeGroup)
def command() -> None:
    """Measure the latency of a database's I/O on real files; every latency is kept as evidence."""
