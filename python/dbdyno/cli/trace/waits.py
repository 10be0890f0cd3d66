"""`dbdyno trace waits`: the waits of one event."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.limits import Count
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.trace.options import (
    chosen_options,
    end_with,
    files_argument,
    opened,
    reading_options,
)


@click.command("waits")
@files_argument
@click.option(
    "--event", "events", multiple=True, metavar="NAME", help="Name of the event; * matches anything. Repeatable."
)
@click.option(
    "--longest",
    type=Count(),
    default=20,
    show_default=True,
    help="Number of longest waits to show, with file and line.",
)
@click.option(
    "--buckets",
    type=click.IntRange(1, 100),
    default=10,
    show_default=True,
    help="Number of histogram steps per decade.",
)
@click.option("--every", metavar="TIME", help="Length of an interval: 1s, 100ms.")
@chosen_options
@reading_options
@page_options
def command(
    files: tuple[str, ...],
    events: tuple[str, ...],
    longest: int,
    buckets: int,
    every: str | None,
    where: str | None,
    begin: str | None,
    end: str | None,
    depth: int | None,
    think_time: str,
    form: str | None,
    output: Path | None,
) -> None:
    """Show the waits of one event in FILES: quantiles with intervals, distribution, over time, longest.

    Without --event, all events, a line each. CSV and JSON lines hold the longest waits, one row
    each, with the file and the line where it stands.

    \b
    dbdyno trace waits --event 'log file sync' traces/
    dbdyno trace waits --event 'log file sync' --longest 10000 -o longest.csv traces/
    dbdyno trace waits --event 'db file*' --every 1s -o reads.html traces/
    """
    from dbdyno.trace.units import length_ns
    from dbdyno.trace.waits import Request, waits_page

    every_ns = length_ns(every, "--every") if every else None
    request = Request(events, longest=longest, every_ns=every_ns, buckets=buckets)
    with opened(files, think_time, where=where, begin=begin, end=end, depth=depth) as traces:
        show_page(waits_page(traces, request), form, output)
        end_with(traces.refused, traces.broken, traces.torn)
