"""`dbdyno device cut`: power cuts under an engine, and a check that every acknowledged commit survives."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.cli.output import Output, seed_option
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import FILE, option_with_default
from dbdyno.cli.spread_options import spread_options, workers_of

if TYPE_CHECKING:
    from dbdyno.cuts.model import CutRow, ShrunkModel
    from dbdyno.cuts.plan import CutPlan


PROGRESS_S = 30.0
"""Time between two lines about the progress of a campaign [s]."""


@click.command("cut")
@click.argument("plan", metavar="PLAN|FILE")
@option_with_default("--cuts", type=click.IntRange(1, 1_000_000), default=20, help="Number of power cuts.")
@click.option(
    "--only",
    type=click.IntRange(1, 100_000),
    help="Repeat only the cut with this number, and before it the earlier cuts of the same database.",
)
@click.option(
    "--shrink",
    "least",
    type=FILE,
    metavar="FILE.toml",
    help="Find the smallest plan that reproduces the first failing cut, and write it to this file.",
)
@seed_option
@page_options
@spread_options
def command(
    plan: str,
    cuts: int,
    only: int | None,
    least: Path | None,
    seed: int | None,
    output: Output,
    scheduler: str | None,
    hosts: tuple[str, ...],
) -> None:
    """Cut the power under an engine repeatedly, and check that every acknowledged commit survives.

    PLAN is one that comes with dbdyno (a wrong name lists them) or a TOML file. A load commits to a folder whose
    unsynced pages are lost, torn or kept in any order when the power fails; sometimes the power fails again while the
    engine recovers. A ledger outside the folder records what was acknowledged. Exit code 1: a commit is lost, a row is
    duplicated, damaged or was written by nobody, or the database is corrupt. Ctrl-C ends the campaign early and shows
    the cuts so far.

    \b
    dbdyno device cut postgres --cuts 100 -o cuts.html
    dbdyno device cut sqlite-full --cuts 200 --seed 11
    dbdyno device cut sqlite-full --seed 11 --only 92
    dbdyno device cut mariadb-doublewrite-off --shrink least.toml
    """
    from dbdyno.cuts.campaign import run_campaign
    from dbdyno.cuts.model import campaign_model
    from dbdyno.cuts.plan import plan_of

    found = plan_of(plan)
    seed = secrets.randbits(31) if seed is None else seed
    click.echo(f"seed {seed}", err=True)
    with workers_of(scheduler, hosts) as workers:
        progress = Progress(cuts)
        campaign = run_campaign(found, cuts, seed, only=only, progress=progress.add, workers=workers)
    model = campaign_model(found, seed, campaign.rows, campaign.faults, campaign.version)
    if least is not None and model["failed"]:
        model["shrunk"] = _shrunk(found, seed, campaign.rows, least)
    show_page(model, output)
    if campaign.interrupted:
        raise KeyboardInterrupt(f"stopped after {len(campaign.rows)} of {cuts} cuts; the page shows these cuts")
    if model["failed"]:
        raise click.exceptions.Exit(1)


class Progress:
    """Progress lines of a campaign: one per cut that the engine did not survive, and one every `PROGRESS_S` seconds."""

    def __init__(self, cuts: int) -> None:
        self._cuts, self._begin = cuts, time.monotonic()
        self._shown, self._failed = self._begin, 0

    def add(self, row: CutRow) -> None:
        """Report a cut."""
        from dbdyno.cuts.model import is_survived

        if not is_survived(row):
            self._failed += 1
            click.echo(
                f"cut {row['cut']}: {len(row['lost'])} lost{', ' if row['corrupt'] else ''}{row['corrupt']}", err=True
            )
        now = time.monotonic()
        if now >= self._shown + PROGRESS_S and row["cut"] < self._cuts:
            self._shown = now
            left_s = (now - self._begin) / row["cut"] * (self._cuts - row["cut"])
            click.echo(
                f"cut {row['cut']} of {self._cuts}: {self._failed} failed, about {left_s / 60:.0f} min left", err=True
            )


def _shrunk(plan: CutPlan, seed: int, rows: list[CutRow], path: Path) -> ShrunkModel:
    """Write the smallest plan that reproduces the first failing cut, and return it for the page."""
    from dbdyno.base.files import write_output
    from dbdyno.cuts.model import is_survived
    from dbdyno.cuts.shrink import shrink, shrunk_model

    first = next(row for row in rows if not is_survived(row))
    found = shrink(plan, seed, first, lambda text: click.echo(text, err=True))
    write_output(path, found.plan.to_toml().encode())
    click.echo(f"{path}: replay it with dbdyno device cut {path} --seed {seed} --only {found.number}", err=True)
    return shrunk_model(found)
