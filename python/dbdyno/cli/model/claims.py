"""`dbdyno model claims`: check the model against published results."""

from __future__ import annotations

import click

from dbdyno.base.limits import Count
from dbdyno.cli.output import Output
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import option_with_default
from dbdyno.cli.spread_options import spread_options, workers_of


@click.command("claims")
@click.option("--only", default="", metavar="N5,N6", help="Check only these claims.")
@option_with_default(
    "--replications", type=Count(2), default=8, help="Number of runs per arm, each with a different seed."
)
@click.option(
    "--most",
    type=Count(2),
    help="Maximum number of runs per claim whose verdict depends on the seed (default: eight times --replications). "
    "`--most 8` is quick; the result shows which verdicts then stay open.",
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Seed of the random numbers (default: a fixed seed).")
@click.option(
    "--seeds",
    type=Count(),
    default=1,
    show_default=True,
    help="Number of consecutive seeds to try, starting with --seed; a claim passes if it holds with each of them.",
)
@page_options
@spread_options
def command(
    only: str,
    replications: int,
    most: int | None,
    seed: int | None,
    seeds: int,
    output: Output,
    scheduler: str | None,
    hosts: tuple[str, ...],
) -> None:
    """Validate the model against the published results N1 to N15: expected range, result, confirmed or not.

    Every number is the result of a run on a built-in machine; nothing is stored. Exit 1 if a claim is not confirmed, 2
    if a claim could not be measured.

    \b
    dbdyno model claims
    dbdyno model claims --only N5,N6 --replications 20
    dbdyno model claims --seeds 5
    """
    from dbdyno.cli.model.progress import progress
    from dbdyno.model.claims import SEED, measure_claims

    dice = SEED if seed is None else seed
    with progress() as on_progress, workers_of(scheduler, hosts) as workers:
        page = measure_claims(
            only.split(","),
            replications=replications,
            limit=most,
            seed=dice,
            seeds=seeds,
            on_progress=on_progress,
            workers=workers,
        )
    show_page(page, output)
    if any("error" in claim for claim in page["claims"]):
        raise click.exceptions.Exit(2)
    if any(claim["verdict"] == "does not hold" for claim in page["claims"]):
        raise click.exceptions.Exit(1)
