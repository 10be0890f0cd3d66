"""`dbdyno probe`: real devices under the I/O of a database, each command in a file of its own."""

from __future__ import annotations

from typing import ClassVar

import click

from dbdyno.cli.main import LazyGroup

ROWS = {
    "redo": ("dbdyno.cli.probe_redo", "Write as a log writer does, to one path or two."),
    "recover": ("dbdyno.cli.probe_recover", "What the files of a killed probe hold."),
}


class _ProbeGroup(LazyGroup):
    rows: ClassVar[dict[str, tuple[str, str]]] = ROWS


@click.group("probe", cls=_ProbeGroup)
def command() -> None:
    """Put real files under the I/O of a database; every latency is kept as evidence."""
