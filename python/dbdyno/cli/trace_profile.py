"""`dbdyno trace profile`: where did the time go."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.trace_options import (
    chosen_options,
    end_with,
    files_argument,
    moments,
    options_of,
    progress,
    reading_options,
    tell_refused,
)


@click.command("profile")
@files_argument
@click.option(
    "--by",
    default="event",
    show_default=True,
    metavar="WHAT[,WHAT]",
    help="event, class, kind, statement, force, module, action, client, service, session,"
    " container, file, depth, object, p1, p2, p3, second, minute.",
)
@chosen_options
@click.option("--top", type=click.IntRange(1), help="Only so many lines, those with most time.")
@click.option("--skew", is_flag=True, help="Under it each line's waits by decade of length.")
@reading_options
@page_options
def command(
    files: tuple[str, ...],
    by: str,
    where: str | None,
    begin: str | None,
    end: str | None,
    depth: int | None,
    top: int | None,
    skew: bool,
    think_time: str,
    form: str | None,
    output: Path | None,
) -> None:
    """The response-time profile of FILES: a line for CPU, one for each event, and the rest.

    The lines add up to the sessions' time, to the microsecond. The last column draws each line's
    skew: one sign per decade of a wait's length, as high as the time spent in such waits.

    \b
    dbdyno trace profile *.trc
    dbdyno trace profile --by statement,event --top 20 traces/
    dbdyno trace profile --where "module = 'batch' and elapsed_us > 1000" traces/
    """
    from dbdyno.trace.profile import Request, profile_page

    from_ns, to_ns = moments(begin, end)
    names = tuple(name.strip() for name in by.split(",") if name.strip())
    request = Request(names, where, from_ns, to_ns, depth, top)
    with progress() as shown:
        model = profile_page(files, request, options_of(think_time), shown)
    tell_refused(model["refused"])
    show_page(model, form, output, skew=skew)
    end_with(model["refused"])
