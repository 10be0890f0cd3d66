"""`dbdyno cells`: storage cells, all of them at once."""

from __future__ import annotations

from typing import ClassVar

import click

from dbdyno.cli.main import LazyGroup

ROWS = {
    "copy": ("dbdyno.cli.cells_copy", "Files onto every cell."),
    "diff": ("dbdyno.cli.cells_diff", "What the cells did between two collections."),
    "history": ("dbdyno.cli.cells_history", "The last hours, from the history that cells keep."),
    "import": ("dbdyno.cli.cells_import", "Archived answers of CellCLI as evidence."),
    "record": ("dbdyno.cli.cells_record", "Keep every metric as evidence, round by round."),
    "restore": ("dbdyno.cli.cells_restore", "Put IORM plans back that a run left behind."),
    "run": ("dbdyno.cli.cells_run", "One command on every cell."),
    "script": ("dbdyno.cli.cells_script", "The commands of a file on every cell."),
    "setup-keys": ("dbdyno.cli.cells_setup_keys", "A key for the cells, host keys looked at."),
    "show": ("dbdyno.cli.cells_show", "What every cell says now, side by side."),
    "skew": ("dbdyno.cli.cells_skew", "Which cell, disk or flash module differs."),
    "watch": ("dbdyno.cli.cells_watch", "What the cells do from round to round."),
}


class CellsGroup(LazyGroup):
    """The commands on cells."""

    rows: ClassVar[dict[str, tuple[str, str]]] = ROWS


@click.group(cls=CellsGroup)
def command() -> None:
    """Storage cells over SSH: every cell at once, values beside their meaning, sums only of what
    may be summed.

    \b
    dbdyno cells show --hosts exa1cel01,exa1cel02 --mask 'FC_IO_RQ_R.*'
    """
