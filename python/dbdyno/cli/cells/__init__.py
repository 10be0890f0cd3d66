"""`dbdyno cells`: commands on all storage cells at once."""

from __future__ import annotations

from dbdyno.cli.main import LazyGroup

command = LazyGroup(
    "cells",
    package=__name__,
    rows={
        "copy": "Copy files to every cell.",
        "diff": "Show what the cells did between two collections.",
        "history": "Record the last hours from the history that cells keep.",
        "import": "Import saved output of CellCLI, dcli or cellsrvstat.",
        "record": "Record every metric as evidence, at an interval.",
        "restore": "Restore IORM plans that a run left changed.",
        "run": "Run one command on every cell.",
        "script": "Run the commands of a file on every cell.",
        "setup-keys": "Set up SSH keys on the cells, with host keys checked.",
        "show": "Show current metrics, a column per cell.",
        "skew": "Find the cell, disk or flash module that differs.",
        "watch": "Watch rates and latencies at an interval.",
    },
    help="""Query storage cells over SSH, all at once.

    Values are shown with their meaning; they are summed only if a sum is meaningful.

    \b
    dbdyno cells show --hosts exa1cel01,exa1cel02 --mask 'FC_IO_RQ_R.*'
    """,
)
