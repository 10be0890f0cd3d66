"""`dbdyno snap report`: what happened between two snapshots."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.limits import Count
from dbdyno.cli.output import Output
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import option_with_default
from dbdyno.cli.snap.options import name_option, store_option


@click.command("report")
@click.argument("first")
@click.argument("last", required=False)
@option_with_default("--top", type=Count(), default=10, help="Number of rows per table.")
@store_option
@name_option
@page_options
def command(
    first: str,
    last: str | None,
    top: int,
    store: Path,
    target: str | None,
    output: Output,
) -> None:
    """Report the interval from snapshot FIRST to snapshot LAST.

    FIRST and LAST are each a number, a note, a time (UTC unless it has a zone) or `last`, `last-1`; a single `last`
    means the latest interval.

    \b
    dbdyno snap report 1 2
    dbdyno snap report 'before batch' 'after batch' -o batch.html
    dbdyno snap report last
    """
    from dbdyno.cli.snap.options import report_damage
    from dbdyno.judge.interval_report import judged_report
    from dbdyno.snapshot.reading.interval import Interval
    from dbdyno.snapshot.reading.names import find
    from dbdyno.snapshot.reading.sums.index import snapshots_of_target
    from dbdyno.snapshot.store.folder import Store

    holder = Store(store)
    if last is None:
        end = find(holder, first, target)
        known = next((one for one in reversed(snapshots_of_target(holder, end.target)) if one.at_ns < end.at_ns), None)
        if known is None:
            raise click.UsageError(
                f"snapshot {end.number} is the first of {end.target}, so there is no "
                f"interval before it: name two snapshots"
            )
        start = holder.open(known.number)
    else:
        start = find(holder, first, target)
        end = find(holder, last, target or (start.target if first.isdigit() else None))
    with Interval(holder, start, end) as interval:
        model = judged_report(interval, top)
    report_damage(holder)
    show_page(model, output)
