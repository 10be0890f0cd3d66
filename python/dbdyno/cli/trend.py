"""`dbdyno trend`: all runs of one plan over time, and where the level changed."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import folder_option
from dbdyno.cli.pages import page_options, show_page


@click.command("trend")
@click.argument("plan", metavar="PLAN.toml", type=click.Path(path_type=Path, dir_okay=False))
@folder_option
@click.option("--from", "since", metavar="TIME", help="Only runs from this day on (2026-11-01), or of the last 30d.")
@click.option("--metric", metavar="NAME", help="throughput, mean, p50, p90, p99, p99.9; the plan's by default.")
@click.option("--level", "levels", is_flag=True, help="Follow each arm's own level instead of its ratio to the base.")
@page_options
def command(
    plan: Path,
    folder: Path,
    since: str | None,
    metric: str | None,
    levels: bool,
    form: str | None,
    output: Path | None,
) -> None:
    """Follow all runs of a plan over time: where an arm got faster or slower, and since which run.

    Runs whose canaries say that the machine was in another state count for no change, nor does an arm where it failed.
    Exit 1 when the last change is for the worse, or an arm failed in the last run.

    In a plan with a base arm, each other arm is followed by its ratio to the base in the same run, so a machine that
    got slower is no change; --level follows each arm by itself.

    A change at a run is reported only if all of these are ruled out at the plan's level: chance, runs that resemble
    the runs before them, a machine that jumps between two modes, a single odd run, and a steady drift. If only the
    drift is not, the arm became slower or faster "at once or by a slow drift". A drift is reported as a drift; if it is
    in an arm's own level, it may be the machine's, and the exit code is 0.

    \b
    dbdyno trend plan.toml
    dbdyno trend plan.toml --level
    dbdyno trend plan.toml --from 30d --metric p99 -o trend.html
    """
    from dbdyno.cli.runs import chosen
    from dbdyno.study.analysis.trend import trend_of

    runs = [run for run in chosen(folder, plan, since) if run.status == "complete"]
    model = trend_of(runs, str(plan), metric, levels=levels)
    show_page(model, form, output)
    if model["verdict"]["decision"] in ("slower", "no verdict"):
        raise click.exceptions.Exit(1)
