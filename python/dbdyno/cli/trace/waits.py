"""`dbdyno trace waits`: the waits of one event."""

from __future__ import annotations

import click

from dbdyno.base.limits import Count
from dbdyno.cli.output import Output
from dbdyno.cli.parameters import option_with_default
from dbdyno.cli.trace.options import TraceSelection, selected_traces, show_traces


@click.command("waits")
@click.option(
    "--event",
    "events",
    multiple=True,
    metavar="NAME",
    help="Show only waits for this event; * matches any text. Repeatable.",
)
@option_with_default("--longest", type=Count(), default=20, help="Number of longest waits to show, with file and line.")
@option_with_default("--buckets", type=click.IntRange(1, 100), default=10, help="Number of histogram steps per decade.")
@click.option("--every", metavar="TIME", help="Length of an interval, such as 1s or 100ms.")
@selected_traces
def command(
    chosen: TraceSelection,
    events: tuple[str, ...],
    longest: int,
    buckets: int,
    every: str | None,
    output: Output,
) -> None:
    """Show the waits of one event in FILES: quantiles with intervals, distribution, over time, longest.

    Without --event, all events are shown, one line each. CSV and JSON lines hold the longest waits, one row each, with
    the file and line that contain the wait.

    \b
    dbdyno trace waits --event 'log file sync' traces/
    dbdyno trace waits --event 'log file sync' --longest 10000 -o longest.csv traces/
    dbdyno trace waits --event 'db file*' --every 1s -o reads.html traces/
    """
    from dbdyno.trace.units import length_ns
    from dbdyno.trace.waits import Request, waits_page

    every_ns = length_ns(every, "--every") if every else None
    request = Request(events, longest=longest, every_ns=every_ns, buckets=buckets)
    show_traces(chosen, lambda traces: waits_page(traces, request), output)
