"""`dbdyno flow`: commands about the order of steps in a data flow, one file per command."""

from __future__ import annotations

import click

from dbdyno.cli.main import LazyGroup

ROWS = {
    "check": ("dbdyno.cli.flow.check", "Check that all engines return the same rows, with and without optimizer."),
    "show": ("dbdyno.cli.flow.show", "The plan as written and as executed, side by side."),
}


@click.group("flow", cls=LazyGroup, rows=ROWS)
def command() -> None:
    """Compare the order of a data flow's steps as written with the order that an optimizer chooses.

    \b
    dbdyno flow show query.sql --engine duckdb --table orders=orders.parquet
    dbdyno flow show script.pig --engine pig
    """
