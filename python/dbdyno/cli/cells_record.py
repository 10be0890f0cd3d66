"""`dbdyno cells record` and `dbdyno cells watch`: one collection after the other."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.cli.cells_options import access_of, hosts_from, reach_options, tell_problems
from dbdyno.cli.output import heading, share_option

if TYPE_CHECKING:
    from dbdyno.cells.collect import Collection


def seconds(ctx: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """A length of time such as 60s, 5min or 1h, in seconds."""
    from dbdyno.trace.units import length_ns

    return None if text is None else length_ns(text, f"--{option.name}") / 1e9


_every = click.option(
    "--every", default="60s", show_default=True, metavar="TIME", callback=seconds, help="Time between two rounds."
)


@click.command()
@reach_options
@_every
@click.option("--for", "lasting", metavar="TIME", callback=seconds, help="How long; without it until Ctrl-C.")
@share_option
@click.option("--out", required=True, metavar="RUN", type=click.Path(path_type=Path), help="The run folder to be made.")
def command(every: float, lasting: float | None, out: Path, **reach: Any) -> None:
    """Keeps every metric of every cell as evidence: a round at once, then one every so often.
    Exit 2 when a cell failed in any round.

    \b
    dbdyno cells record -H @cell_group --for 1h --out before
    """
    from dbdyno.cells.record import Pace, record

    failed = False

    def told(index: int, rows: int, collection: Collection) -> None:
        nonlocal failed
        click.echo(f"round {index + 1}: {rows:,} values of {len(collection.columns)} cells", err=True)
        failed = tell_problems(collection.columns) or failed

    run = record(out, hosts_from(reach), access_of(reach), Pace(every, lasting), told)
    click.echo(f"next: dbdyno compare BEFORE {run.path}", err=True)
    if failed:
        raise click.exceptions.Exit(2)


@click.command()
@reach_options
@_every
@click.option("--for", "lasting", metavar="TIME", callback=seconds, help="How long.")
@click.option("-m", "--mask", metavar="REGEX", help="Only metrics whose whole name matches.")
@click.option(
    "--by",
    type=click.Choice(("cell", "object", "both")),
    default="cell",
    show_default=True,
    help="Put objects together, or cells, or keep both apart.",
)
@click.option("--top", type=click.IntRange(1), help="Only the metrics that moved most.")
def watch(every: float, lasting: float | None, mask: str | None, by: str, top: int | None, **reach: Any) -> None:
    """What the cells do from round to round: differences and rates, over each cell's
    own times of collection.

    A cell collects once a minute: asked sooner, it has nothing new, which is told from zero.

    \b
    dbdyno cells watch -H @cell_group --every 60s --mask 'FL_.*'
    """
    from dbdyno.cells.diff import diff_page
    from dbdyno.cells.record import Pace, rounds
    from dbdyno.cli.cells_diff import print_moved

    failed = False

    async def work() -> None:
        nonlocal failed
        before: Collection | None = None
        async for collection in rounds(hosts_from(reach), access_of(reach), Pace(every, lasting), mask=mask):
            failed = tell_problems(collection.columns) or failed
            if before is None:
                click.echo(f"{len(collection.readings):,} values; differences from the next round on", err=True)
            else:
                heading(time.strftime("%H:%M:%S"))
                print_moved(diff_page(before, collection, by=by), top)
            before = collection

    asyncio.run(work())
    if failed:
        raise click.exceptions.Exit(2)
