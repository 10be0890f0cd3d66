"""`dbdyno trace report`: one linked page about a set of traces."""

from __future__ import annotations

import click

from dbdyno.base.limits import Count
from dbdyno.cli.output import Output
from dbdyno.cli.parameters import option_with_default
from dbdyno.cli.trace.options import TraceSelection, fold_option, show_traces, whole_traces
from dbdyno.cli.trace.sql import SORTS


@click.command("report")
@option_with_default("--top", type=Count(0), default=15, help="Show the top N statements; 0 for all.")
@option_with_default(
    "--sort", type=click.Choice(SORTS), default="elapsed", help="Sort statements by this figure, largest first."
)
@click.option("--merge-literals", is_flag=True, help="Treat statements that differ only in literals as one.")
@option_with_default("--longest", type=Count(), default=20, help="Number of longest waits to show.")
@click.option("--binds", is_flag=True, help="Show bind values; they may be personal data.")
@fold_option
@whole_traces
def command(
    chosen: TraceSelection,
    top: int,
    sort: str,
    merge_literals: bool,
    longest: int,
    binds: bool,
    share: float,
    output: Output,
) -> None:
    """Make one page of FILES: profile, statements, plans, waits and trees.

    Each statement is shown with its calls, plan, waits, binds and tree; the longest waits with file and line. In HTML
    everything is linked. Bind values are shown only with --binds, or if an import kept them.

    \b
    dbdyno trace report orcl_ora_4321.trc -o report.html
    dbdyno trace report --merge-literals --top 30 traces/ -o report.html
    """
    from dbdyno.trace.report import Request, report_page

    request = Request(top, sort, merge_literals, longest, share / 100)
    show_traces(chosen, lambda traces: report_page(traces, request), output, binds=binds)
