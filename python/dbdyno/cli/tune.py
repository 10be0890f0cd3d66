"""`dbdyno tune`: a race among a plan's arms, then a comparison of the winner with the base in fresh blocks."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base.errors import PlanError
from dbdyno.base.json_types import JsonObject
from dbdyno.cli.output import Output, out_option, seed_option, share_option
from dbdyno.cli.parameters import FILE, option_with_default
from dbdyno.cli.spread_options import spread_options, workers_of

if TYPE_CHECKING:
    from dbdyno.evidence.run import Run
    from dbdyno.hosts.workers import Workers
    from dbdyno.study.plan.plan import Plan
    from dbdyno.study.run.progress import Progress

RACE_SHARE = 2 / 3
"""Share of the available time for the race; the rest is for fresh blocks."""
FRESH_LEAST = 6


@click.command("tune")
@click.argument("plan", metavar="PLAN.toml", type=FILE)
@click.option("--target", help="What to run on, as for `dbdyno run`.")
@click.option(
    "--budget",
    metavar="TIME",
    help="Time limit for both the race and the fresh blocks that then compare the winner with the base, such as 30min.",
)
@click.option(
    "--blocks",
    type=click.IntRange(4, 100_000),
    help="Maximum number of blocks in the race (default: that of the plan).",
)
@seed_option
@out_option
@option_with_default(
    "-o", "--output", type=FILE, default=Path("confirm.toml"), help="File for the plan that confirms the winner."
)
@share_option
@spread_options
def command(
    plan: Path,
    target: str | None,
    budget: str | None,
    blocks: int | None,
    seed: int | None,
    out: Path,
    output: Path,
    scheduler: str | None,
    hosts: tuple[str, ...],
) -> None:
    """Find the best of many arms, such as the levels of a plan's factors.

    After each block the arms that are surely worse are dropped, so that fewer blocks are needed. Then the winner is
    compared in fresh blocks with the first arm, which is what you have now: this shows the gain to expect. The plan
    with these two arms is written to a file.

    \b
    dbdyno tune plan.toml                   until one is left, or the rest are equal
    dbdyno tune plan.toml --budget 30min    as far as it comes in that time
    """
    from dbdyno.base.signals import Interrupted
    from dbdyno.cli.run import show
    from dbdyno.study.run.progress import progress_for

    race, seconds = _race(plan, target, blocks), _seconds(budget)
    progress = progress_for()
    try:
        with workers_of(scheduler, hosts) as workers:
            ways = {"workers": workers}
            run = _race_arms(race, out, progress, seed, seconds, ways)
            _show_race(run)
            fresh = _fresh(run, race, seconds, output)
            if fresh is None:
                return
            from dbdyno.study.run.execute import start

            confirmed = start(fresh, out, progress, seed=None if seed is None else seed + 1, ways=ways)
        show(confirmed, Output())
    except Interrupted as stop:
        progress.end()
        click.echo("interrupted: all changes to the engine are undone; complete blocks are kept", err=True)
        raise click.exceptions.Exit(130) from stop
    if fresh.toml:
        click.echo(f"to confirm it: dbdyno run {output}")


def _race(path: Path, target: str | None, blocks: int | None) -> Plan:
    """Return the plan in a file, set up as a race among its arms.

    Raises:
        PlanError: there are fewer than two arms.
    """
    from dbdyno.study.plan import keys
    from dbdyno.study.plan.file import read_plan
    from dbdyno.study.plan.targets import plan_on_target

    made = plan_on_target(read_plan(path, arms_most=keys.ARMS_MOST), target)
    if len(made.arms) < 2:
        raise PlanError(
            "a race needs at least two arms, but the plan has one",
            where=str(path),
            next_step="add [[factor]] or a second [[arm]]",
        )
    schedule = replace(made.schedule, blocks=blocks or made.schedule.blocks)
    return replace(made, kind="tune", title=f"{made.title}: race", schedule=schedule)


def _seconds(budget: str | None) -> float | None:
    from dbdyno.study.plan.durations import duration_ns

    if budget is None:
        return None
    nanoseconds = duration_ns(budget)
    if not nanoseconds:
        raise PlanError(
            f"{budget!r} is not a time", where="--budget", next_step='write a time such as "30min" or "90s"'
        )
    return nanoseconds / 1e9


def _race_arms(
    plan: Plan,
    out: Path,
    progress: Progress,
    seed: int | None,
    seconds: float | None,
    ways: dict[str, Workers | None],
) -> Run:
    from dbdyno.study.run.execute import start
    from dbdyno.study.run.race import RaceRunner

    runner = functools.partial(RaceRunner, seconds=None if seconds is None else seconds * RACE_SHARE)
    return start(plan, out, progress, seed=seed, ways=ways, runner=runner)


def _show_race(run: Run) -> None:
    from dbdyno.cli.compare import print_analysis
    from dbdyno.report.html import write_html
    from dbdyno.study.analysis.analyse import analyse

    analysis = analyse(run)
    write_html(analysis, run.path / "report.html")
    print_analysis(analysis)
    click.echo(f"report: {run.path / 'report.html'}\n")


def _fresh(run: Run, plan: Plan, seconds: float | None, output: Path) -> Plan | None:
    """Write the plan that compares winner and base to `output` and return it; None if the base has won.

    Raises:
        PlanError: every arm failed.
    """
    from dbdyno.report.files import write_whole
    from dbdyno.study.plan.confirmation import confirming_plan

    race: JsonObject = run.manifest.race
    if not race["alive"] or len(race["failed"]) == len(plan.arms):
        step = f"run the {plan.runnable_kind} manually, then correct the plan"
        raise PlanError("every arm failed", where=run.id, next_step=step)
    if race["leader"] == 0:
        click.echo(f"{plan.arms[0].name} is the base, as before: there is nothing to confirm")
        return None
    blocks = plan.schedule.blocks
    if seconds is not None:
        each = float(run.manifest.wall_s) / max(race["ran"], 1)
        blocks = max(FRESH_LEAST, min(blocks, int(seconds * (1 - RACE_SHARE) / (2 * each))))
    original = replace(plan, title=plan.title.removesuffix(": race"))
    made = confirming_plan(original, plan.arms[0], plan.arms[race["leader"]], blocks)
    if made.toml:
        write_whole(output, made.toml.encode())
    else:
        click.echo("the plan that confirms it cannot be written as a file", err=True)
    return made
