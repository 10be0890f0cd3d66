"""`dbdyno trace report`: one linked page about a set of traces."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.limits import Count
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.trace.options import end_with, files_argument, fold_option, opened, reading_options
from dbdyno.cli.trace.sql import SORTS


@click.command("report")
@files_argument
@click.option("--top", type=Count(0), default=15, show_default=True, help="Show the top N statements; 0 for all.")
@click.option(
    "--sort", type=click.Choice(SORTS), default="elapsed", show_default=True, help="Sort by this, largest first."
)
@click.option("--merge-literals", is_flag=True, help="Treat statements that differ only in literals as one.")
@click.option("--longest", type=Count(), default=20, show_default=True, help="Number of longest waits to show.")
@click.option("--binds", is_flag=True, help="Show bind values; they may be personal data.")
@fold_option
@reading_options
@page_options
def command(
    files: tuple[str, ...],
    top: int,
    sort: str,
    merge_literals: bool,
    longest: int,
    binds: bool,
    share: float,
    think_time: str,
    form: str | None,
    output: Path | None,
) -> None:
    """Make one page of FILES: profile, statements, plans, waits and trees.

    Each statement has its calls, plan, waits, binds and tree; the longest waits have file and line. In HTML everything
    is linked. Bind values are shown only with --binds, or of an import that kept them.

    \b
    dbdyno trace report orcl_ora_4321.trc -o report.html
    dbdyno trace report --merge-literals --top 30 traces/ -o report.html
    """
    from dbdyno.trace.report import Request, report_page

    request = Request(top, sort, merge_literals, longest, share / 100)
    with opened(files, think_time, binds=binds) as traces:
        show_page(report_page(traces, request), form, output)
        end_with(traces.refused, traces.broken, traces.torn)
