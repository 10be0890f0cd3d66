"""`dbdyno cells watch`: activity of the cells in each round, compared with their average."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import click

from dbdyno.base.limits import Count
from dbdyno.cli.cells import options as shared
from dbdyno.cli.cells.record import every_option, seconds
from dbdyno.cli.output import Output, heading, show_rows

if TYPE_CHECKING:
    from dbdyno.cells.collection import Collection
    from dbdyno.cells.page import WatchedRow, WatchPage


@click.command()
@shared.reach_options
@every_option
@click.option("--for", "lasting", metavar="TIME", callback=seconds, help="Stop after this time.")
@shared.selection_options
@shared.by_option
@click.option(
    "--top", type=Count(), help="Show the top N lines: errors first, then the values farthest from their average."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "jsonl")),
    default="table",
    help="Output format; --json is short for --format json.",
)
def command(every: float, lasting: float | None, by: str, top: int | None, form: str, **reach: Any) -> None:
    """Watch rates, latencies and levels of the cells, each beside its average since the watch began.

    Rates are computed over each cell's own times of collection. A cell collects once a minute: if it is queried sooner,
    it has no new values, which is not shown as zero.

    \b
    dbdyno cells watch -H @cell_group --every 60s --mask 'FL_.*'
    dbdyno cells watch -H @cell_group --database SALES --top 20
    """
    from dbdyno.cells.record import Pace, rounds
    from dbdyno.cells.watch import RunningSums, watch_page

    failed, since, pick = False, RunningSums(), shared.selection_from(reach)

    async def work() -> None:
        nonlocal failed
        before: Collection | None = None
        async for collection in rounds(shared.hosts_from(reach), shared.access_of(reach), Pace(every, lasting)):
            failed = shared.report_problems(collection.columns) or failed
            pick.by_object.apply(collection)
            if before is None:
                shared.report_duplicates(collection)
                click.echo(f"{len(collection.readings):,} values; differences follow from the next round on", err=True)
            else:
                page = watch_page(since, before, collection, by=by)
                page["rows"] = [row for row in page["rows"] if pick.wants_name(row["metric"])]
                page["without"] = [entry for entry in page["without"] if pick.wants_name(entry["metric"])]
                _print(page, collection, top, form)
            before = collection

    asyncio.run(work())
    if failed:
        raise click.exceptions.Exit(2)


def _print(page: WatchPage, collection: Collection, top: int | None, form: str) -> None:
    """Print a round; rows without any activity so far are left out."""
    from dbdyno.cells.show import age_words, show_page
    from dbdyno.cli.cells.diff import report_missing_changes

    rows = [row for row in page["rows"] if row["now"] or row["average"]][:top]
    at = time.strftime("%H:%M:%S")
    if form == "jsonl":
        for row in rows:
            click.echo(json.dumps({"at": at, **row}, ensure_ascii=False))
        return
    ages = age_words(show_page(collection))
    heading(f"{at}  {'; '.join(ages)}")
    if rows:
        show_rows(_lines(rows), Output("table"))
    report_missing_changes(page["without"])
    if not rows and not page["without"]:
        click.echo("nothing moved")


def _lines(rows: list[WatchedRow]) -> list[dict[str, str]]:
    lines = [
        {
            "metric": row["metric"],
            "cell": row["cell"],
            "object": row["object"],
            "now": digits(row["now"]),
            "average": digits(row["average"]),
            "unit": row["unit"],
        }
        for row in rows
    ]
    shown = [key for key in lines[0] if any(line[key] for line in lines)]
    return [{key: line[key] for key in shown} for line in lines]


def digits(value: float | None) -> str:
    """Return a number as text: four significant digits, or from 1,000 on all digits of the rounded number."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
