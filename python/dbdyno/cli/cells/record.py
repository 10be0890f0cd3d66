"""`dbdyno cells record`: repeated collections, stored as evidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.cli.cells.options import access_of, hosts_from, reach_options, report_duplicates, report_problems
from dbdyno.cli.output import share_option
from dbdyno.cli.parameters import PATH, option_with_default

if TYPE_CHECKING:
    from dbdyno.cells.collection import Collection


def seconds(ctx: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """Return a duration such as 60s, 5min or 1h in seconds."""
    from dbdyno.trace.units import length_ns

    return None if text is None else length_ns(text, f"--{option.name}") / 1e9


every_option = option_with_default(
    "--every", default="60s", metavar="TIME", callback=seconds, help="Time between two readings of all cells."
)


@click.command()
@reach_options
@every_option
@click.option(
    "--for", "lasting", metavar="TIME", callback=seconds, help="Stop after this time (default: until Ctrl-C)."
)
@share_option
@click.option("--out", required=True, metavar="RUN", type=PATH, help="Run folder to create.")
def command(every: float, lasting: float | None, out: Path, **reach: Any) -> None:
    """Record every metric of every cell, now and once per period.

    Exit 2 if a cell failed in any round.

    \b
    dbdyno cells record -H @cell_group --for 1h --out before
    """
    from dbdyno.cells.record import Pace, record

    failed = False
    known: dict[str, str | None] = {}

    def on_round(index: int, rows: int, collection: Collection) -> None:
        """Report a round; a cell that fails with the same problem as in the previous round is only counted."""
        nonlocal failed
        columns = collection.columns
        silent = sum(not column.everything for column in columns)
        left = f"; {silent} of {len(columns)} gave nothing" if silent else ""
        click.echo(f"round {index + 1}: {rows:,} values of {len(columns) - silent} cells{left}", err=True)
        if index == 0:
            report_duplicates(collection)
        new = [column for column in columns if column.problem != known.get(column.host.name)]
        for column in new:
            if not column.problem:
                click.echo(f"dbdyno: {column.host.name}: answers again", err=True)
        report_problems(new)
        known.update((column.host.name, column.problem) for column in columns)
        failed = failed or any(column.problem for column in columns)

    run = record(out, hosts_from(reach), access_of(reach), Pace(every, lasting), on_round)
    click.echo(f"next: dbdyno compare BEFORE {run.path}", err=True)
    if failed:
        raise click.exceptions.Exit(2)
