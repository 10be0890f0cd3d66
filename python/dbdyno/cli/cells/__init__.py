"""`dbdyno cells`: commands on all storage cells at once."""

from __future__ import annotations

import click

from dbdyno.cli.main import LazyGroup

ROWS = {
    "copy": ("dbdyno.cli.cells.copy", "Copy files to every cell."),
    "diff": ("dbdyno.cli.cells.diff", "Show what the cells did between two collections."),
    "history": ("dbdyno.cli.cells.history", "Record the last hours from the history that cells keep."),
    "import": ("dbdyno.cli.cells.imports", "Import saved output of CellCLI, dcli or cellsrvstat."),
    "record": ("dbdyno.cli.cells.record", "Record every metric as evidence, at an interval."),
    "restore": ("dbdyno.cli.cells.restore", "Restore IORM plans that a run left changed."),
    "run": ("dbdyno.cli.cells.run", "Run one command on every cell."),
    "script": ("dbdyno.cli.cells.script", "Run the commands of a file on every cell."),
    "setup-keys": ("dbdyno.cli.cells.setup_keys", "Set up SSH keys on the cells, with host keys checked."),
    "show": ("dbdyno.cli.cells.show", "Show current metrics, a column per cell."),
    "skew": ("dbdyno.cli.cells.skew", "Find the cell, disk or flash module that differs."),
    "watch": ("dbdyno.cli.cells.watch", "Watch rates and latencies at an interval."),
}


@click.group(cls=LazyGroup, rows=ROWS)
def command() -> None:
    """Query storage cells over SSH, all at once.

    Values are shown with their meaning; they are summed only if a sum is meaningful.

    \b
    dbdyno cells show --hosts exa1cel01,exa1cel02 --mask 'FC_IO_RQ_R.*'
    """
