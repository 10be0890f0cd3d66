"""`dbdyno trace tree`: the recursion tree of one execution."""

from __future__ import annotations

import click

from dbdyno.cli.output import Output
from dbdyno.cli.trace.options import TraceSelection, fold_option, show_traces, whole_traces


@click.command("tree")
@click.option(
    "--call",
    type=click.IntRange(0, 2**63 - 1),
    help="Show the call with this number, as in the column `call` of the evidence.",
)
@click.option("--statement", metavar="KEY", help="Show the longest call of this statement.")
@click.option("--line", "place", metavar="FILE:LINE", help="Show the first call at or after this line of a trace file.")
@click.option("--calls", is_flag=True, help="Show one line per call instead of one per statement.")
@fold_option
@whole_traces
def command(
    chosen: TraceSelection,
    call: int | None,
    statement: str | None,
    place: str | None,
    calls: bool,
    share: float,
    output: Output,
) -> None:
    """Show the recursion tree of one call of FILES: by default the client's longest.

    `elapsed` includes the calls below a line, `self` does not. The waits of each line are listed under it.

    \b
    dbdyno trace tree orcl_ora_4321.trc
    dbdyno trace tree --line orcl_ora_4321.trc:1500 -o tree.svg orcl_ora_4321.trc
    """
    from dbdyno.trace.tree import Request, tree_page

    if sum(given is not None for given in (call, statement, place)) > 1:
        raise click.UsageError("give one of --call, --statement and --line")
    show_traces(chosen, lambda traces: tree_page(traces, Request(call, statement, place, calls, share / 100)), output)
