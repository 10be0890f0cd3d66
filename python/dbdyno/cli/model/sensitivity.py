"""`dbdyno model sensitivity`: which parameters move the answer."""

from __future__ import annotations

import click

from dbdyno.base.limits import Count
from dbdyno.cli.output import Output
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import option_with_default
from dbdyno.cli.spread_options import spread_options, workers_of


@click.command("sensitivity")
@click.argument("machine", metavar="FILE")
@click.option(
    "--sessions", type=click.IntRange(1, 65_535), help="Number of sessions (default: the number in the calibration)."
)
@option_with_default(
    "--trajectories", type=Count(2), default=10, help="Number of paths through the parameters' ranges."
)
@option_with_default(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=1, help="Seed of the random paths and samples."
)
@click.option(
    "--sobol",
    type=Count(16),
    metavar="N",
    help="Also compute Sobol indices from N samples; this takes N x (parameters + 2) more runs.",
)
@page_options
@spread_options
def command(
    machine: str,
    sessions: int | None,
    trajectories: int,
    seed: int,
    sobol: int | None,
    output: Output,
    scheduler: str | None,
    hosts: tuple[str, ...],
) -> None:
    """Rank the parameters of a calibrated machine by how much they move throughput and p99 (Morris).

    A parameter is varied within its interval or, if the machine gives none, by a quarter up and down. --sobol adds the
    share of the variance that each parameter explains.

    \b
    dbdyno model sensitivity mine.toml --sessions 8
    dbdyno model sensitivity mine.toml --sobol 64
    dbdyno model sensitivity mine.toml --scheduler tcp://desk:8786    paths on many hosts
    """
    from dbdyno.cli.model.progress import progress
    from dbdyno.model.machine import machine_of
    from dbdyno.study.prediction.compare import CalibratedMachine
    from dbdyno.study.prediction.sensitivity import sensitivity

    given = CalibratedMachine.from_machine(machine_of(machine))
    number = sessions if sessions is not None else max(given.sessions, 1)
    with progress() as tell, workers_of(scheduler, hosts) as workers:
        page = sensitivity(
            given,
            sessions=number,
            trajectories=trajectories,
            seed=seed,
            samples=sobol or 0,
            on_progress=tell,
            workers=workers,
        )
    show_page(page, output)
