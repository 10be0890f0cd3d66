"""`dbdyno snap statement`: one statement between two snapshots: calls, time, latencies, plans, waits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base.limits import Count
from dbdyno.cli.output import Output
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import option_with_default
from dbdyno.cli.snap.options import name_option, store_option

if TYPE_CHECKING:
    from dbdyno.snapshot.store.folder import Snapshot, Store


@click.command("statement")
@click.argument("statement")
@click.argument("first")
@click.argument("last")
@option_with_default("--top", type=Count(), default=10, help="Number of rows per table.")
@click.option(
    "--experiment", is_flag=True, help="Instead of the page, print a plan.toml that tests a change to the statement."
)
@store_option
@name_option
@page_options
def command(
    statement: str,
    first: str,
    last: str,
    top: int,
    experiment: bool,
    store: Path,
    target: str | None,
    output: Output,
) -> None:
    """Show one STATEMENT between snapshot FIRST and snapshot LAST: calls, time, latencies, plans and waits.

    STATEMENT is the statement's identifier as shown in reports: queryid, digest or SQL_ID.

    \b
    dbdyno snap statement 8342006184126112 1 60
    dbdyno snap statement 8342006184126112 1 last -o statement.html
    dbdyno snap statement 8342006184126112 1 60 --experiment -o plan.toml
    """
    from dbdyno.snapshot.reading.interval import Interval
    from dbdyno.snapshot.reading.names import find
    from dbdyno.snapshot.statement import statement as statement_page
    from dbdyno.snapshot.store.folder import Store

    holder = Store(store)
    start = find(holder, first, target)
    end = find(holder, last, target or (start.target if first.isdigit() else None))
    if experiment:
        _show_plan(holder, (start, end), statement, output)
        return
    with Interval(holder, start, end) as interval:
        model = statement_page(interval, statement, top)
    show_page(model, output)


def _show_plan(store: Store, ends: tuple[Snapshot, Snapshot], statement: str, output: Output) -> None:
    """Print the plan of a statement, or write it into a file."""
    from dbdyno.advise.statement_plan import plan_of_seen

    output.echo(plan_of_seen(store, ends, statement))
