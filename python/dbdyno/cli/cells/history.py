"""`dbdyno cells history`: past activity of the cells, from before any recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dbdyno.cli.cells.options import access_of, hosts_from, reach_options
from dbdyno.cli.cells.record import seconds
from dbdyno.cli.output import share_option
from dbdyno.cli.parameters import PATH, option_with_default

WEEK_S = 7 * 86_400


@click.command()
@reach_options
@option_with_default(
    "--last", default="2h", metavar="TIME", callback=seconds, help="Length of the history to read; it ends now."
)
@share_option
@click.option("--out", required=True, metavar="RUN", type=PATH, help="Run folder to create.")
def command(last: float, out: Path, **reach: Any) -> None:
    """Make a recording of the last hours from the history that cells keep.

    Cells keep each minute for a week by default (LIST METRICHISTORY), so no watch needs to have run. Exit 2 if a cell
    failed.

    \b
    dbdyno cells history -H @cell_group --last 2h --out lunch
    dbdyno report lunch
    """
    from dbdyno.base.errors import CellsError
    from dbdyno.cells.history import history

    if not 60 <= last <= WEEK_S:
        raise CellsError(
            f"{last:g} s is outside the allowed range",
            where="--last",
            next_step="choose a time from 1min to 7d, such as --last 2h",
        )

    def on_values(minutes: int, values: int) -> None:
        click.echo(f"the last {minutes} min: {values:,} values", err=True)

    found = history(out, hosts_from(reach), access_of(reach), round(last / 60), on_values)
    for sentence in found.twice:
        click.echo(f"dbdyno: {sentence}", err=True)
    for cell, problem in found.problems.items():
        click.echo(f"dbdyno: {cell}: {problem}", err=True)
    click.echo(f"{found.run.path}: {found.values:,} values in {found.rounds:,} round(s)", err=True)
    click.echo(f"next: dbdyno report {found.run.path}", err=True)
    if found.problems:
        raise click.exceptions.Exit(2)
