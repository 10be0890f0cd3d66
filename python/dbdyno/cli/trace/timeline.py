"""`dbdyno trace timeline`: activity of each session, second by second."""

from __future__ import annotations

import click

from dbdyno.cli.output import Output
from dbdyno.cli.trace.options import TraceSelection, selected_traces, show_traces


@click.command("timeline")
@click.option("--every", metavar="TIME", help="Length of an interval, such as 1s or 100ms.")
@click.option("--session", metavar="NAME", help="Show only this session, such as 155.25441.")
@selected_traces
def command(
    chosen: TraceSelection,
    every: str | None,
    session: str | None,
    output: Output,
) -> None:
    """Show what the sessions of FILES did over time: CPU, commit, reads, network, idle.

    A single session is shown interval by interval; several sessions are shown as one strip each. CSV and JSON lines
    hold a row for each session, interval and class.

    \b
    dbdyno trace timeline --every 1s orcl_ora_4321.trc
    dbdyno trace timeline -o timeline.png traces/
    """
    from dbdyno.trace.timeline import timeline_page
    from dbdyno.trace.units import length_ns

    every_ns = length_ns(every, "--every") if every else None
    show_traces(chosen, lambda traces: timeline_page(traces, every_ns=every_ns, session=session), output)
