"""`dbdyno flow`: commands about the order of steps in a data flow, one file per command."""

from __future__ import annotations

from dbdyno.cli.main import LazyGroup

command = LazyGroup(
    "flow",
    package=__name__,
    rows={
        "check": "Check that all engines return the same rows, with and without optimizer.",
        "show": "The plan as written and as executed, side by side.",
    },
    help="""Compare the order of a data flow's steps as written with the order that an optimizer chooses.

    \b
    dbdyno flow show query.sql --engine duckdb --table orders=orders.parquet
    dbdyno flow show script.pig --engine pig
    """,
)
