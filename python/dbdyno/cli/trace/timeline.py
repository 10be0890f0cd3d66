"""`dbdyno trace timeline`: activity of each session, second by second."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.trace.options import (
    chosen_options,
    end_with,
    files_argument,
    opened,
    reading_options,
)


@click.command("timeline")
@files_argument
@click.option("--every", metavar="TIME", help="Length of an interval: 1s, 100ms.")
@click.option("--session", metavar="NAME", help="This session only, such as 155.25441.")
@chosen_options
@reading_options
@page_options
def command(
    files: tuple[str, ...],
    every: str | None,
    session: str | None,
    where: str | None,
    begin: str | None,
    end: str | None,
    depth: int | None,
    think_time: str,
    form: str | None,
    output: Path | None,
) -> None:
    """Show what the sessions of FILES did over time: CPU, commit, reads, network, idle.

    One session is shown interval by interval, several as a strip each. CSV and JSON lines hold a
    row for each session, interval and class.

    \b
    dbdyno trace timeline --every 1s orcl_ora_4321.trc
    dbdyno trace timeline -o timeline.png traces/
    """
    from dbdyno.trace.timeline import timeline_page
    from dbdyno.trace.units import length_ns

    every_ns = length_ns(every, "--every") if every else None
    with opened(files, think_time, where=where, begin=begin, end=end, depth=depth) as traces:
        show_page(timeline_page(traces, every_ns=every_ns, session=session), form, output)
        end_with(traces.refused, traces.broken, traces.torn)
