"""`dbdyno trace sql`: the cost of each statement."""

from __future__ import annotations

import click

from dbdyno.base.limits import Count
from dbdyno.cli.output import Output
from dbdyno.cli.parameters import option_with_default
from dbdyno.cli.trace.options import TraceSelection, selected_traces, show_traces

SORTS = ("elapsed", "cpu", "wait", "count", "executions", "rows", "disk", "query", "current", "misses")


@click.command("sql")
@option_with_default("--top", type=Count(0), default=10, help="Show the top N statements; 0 for all.")
@option_with_default(
    "--sort", type=click.Choice(SORTS), default="elapsed", help="Sort statements by this figure, largest first."
)
@click.option("--statement", metavar="KEY", help="Show only this statement (usually its SQL_ID).")
@click.option("--merge-literals", is_flag=True, help="Treat statements that differ only in literals as one.")
@click.option("--no-recursive", is_flag=True, help="Leave out SYS's recursive statements.")
@selected_traces
def command(
    chosen: TraceSelection,
    top: int,
    sort: str,
    statement: str | None,
    merge_literals: bool,
    no_recursive: bool,
    output: Output,
) -> None:
    """Show the statements of FILES: call table, waits, plan with row counts, parents and children.

    Figures are exclusive: what recursive statements did below a statement is counted in their own figures. Waits inside
    calls are part of `elapsed`, waits between calls are not.

    \b
    dbdyno trace sql --top 5 --sort cpu orcl_ora_4321.trc
    dbdyno trace sql --merge-literals --no-recursive traces/
    dbdyno trace sql --statement 6v48b7j2tc4a0 -o statement.html traces/
    """
    from dbdyno.trace.statements import Request, statements_page

    request = Request(top, sort, merge_literals, not no_recursive, statement)
    show_traces(chosen, lambda traces: statements_page(traces, request), output)
