"""`dbdyno model map`: show how a claim's quantity depends on parameters that its source does not state."""

from __future__ import annotations

import click

from dbdyno.base.limits import Count
from dbdyno.cli.output import Output
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import option_with_default


@click.command("map")
@click.argument("claim", metavar="CLAIM")
@option_with_default(
    "--replications", type=Count(2), default=4, help="Number of runs per point, each with a different seed."
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Seed of the random numbers (default: a fixed seed).")
@page_options
def command(claim: str, replications: int, seed: int | None, output: Output) -> None:
    """Draw a claim's quantity over the parameters that its source does not state.

    CLAIM is N3, N5, N8, N10 or N12. The drawing includes the published value, and the point on each curve at which the
    model gives that value.

    \b
    dbdyno model map N12
    dbdyno model map N3 -o n3.html
    """
    from dbdyno.cli.model.progress import progress
    from dbdyno.model.claims import SEED, measure_map

    with progress() as on_progress:
        page = measure_map(
            claim, replications=replications, seed=SEED if seed is None else seed, on_progress=on_progress
        )
    show_page(page, output)
