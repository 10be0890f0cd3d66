"""`dbdyno trend`: all runs of one plan over time, and where the level changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base.errors import EvidenceError
from dbdyno.cli.output import Output, folder_option
from dbdyno.cli.pages import page_options, show_page

if TYPE_CHECKING:
    from dbdyno.study.analysis.trend import Trend


@click.command("trend")
@click.argument("plan", metavar="PLAN.toml|RUN")
@folder_option
@click.option(
    "--from", "since", metavar="TIME", help="Use only runs since this date (2026-11-01), or since this long ago (30d)."
)
@click.option(
    "--metric",
    metavar="NAME",
    help="Metric to follow: throughput, mean, p50, p90, p99 or p99.9 (default: the plan's metric).",
)
@click.option(
    "--level", "levels", is_flag=True, help="Follow the metric of each arm itself instead of its ratio to the base."
)
@click.option(
    "--results",
    metavar="PLACE",
    help="Follow the results that are kept in this folder or branch (branch:NAME), instead of runs.",
)
@click.option(
    "--ran-on",
    "machine",
    metavar="NAME",
    help="With --results: use the results from this machine (default: the machine of the last result).",
)
@page_options
def command(
    plan: str,
    folder: Path,
    since: str | None,
    metric: str | None,
    levels: bool,
    results: str | None,
    machine: str | None,
    output: Output,
) -> None:
    """Follow all runs of a plan over time: where an arm got faster or slower, and since which run.

    A run whose canaries show that the machine was in another state is not used to find changes, and neither is an arm
    in a run where it failed. Exit 1 if the last change is for the worse, or if an arm failed in the last run.

    If a RUN is given, all runs with its plan are followed; the plan of an imported run is its benchmark.

    In a plan with a base arm, each other arm is followed by its ratio to the base in the same run, so a machine that
    got slower is no change; --level follows each arm by itself.

    A change at a run is reported only if all of these are ruled out at the plan's level: chance, runs that resemble the
    runs before them, a machine that jumps between two modes, a single odd run, and a steady drift. If only a drift
    cannot be ruled out, the report says that the arm became slower or faster "at once or by a slow drift". A drift is
    reported as a drift; if it is in an arm's own level, the machine may be its cause, and the exit code is 0.

    \b
    dbdyno trend plan.toml
    dbdyno trend plan.toml --level
    dbdyno trend plan.toml --from 30d --metric p99 -o trend.html
    dbdyno trend runs/imported-night
    dbdyno trend plan.toml --results branch:performance
    """
    from dbdyno.cli.runs.choose import choose_runs
    from dbdyno.study.analysis.trend import trend_of

    if results is not None:
        model = _kept_trend(plan, folder, since, metric, levels, results, machine)
    else:
        runs = [run for run in choose_runs(folder, plan, since) if run.status == "complete"]
        model = trend_of(runs, plan, metric, levels=levels)
    show_page(model, output)
    if model["verdict"]["decision"] in ("slower", "no verdict"):
        raise click.exceptions.Exit(1)


def _kept_trend(
    plan: str, folder: Path, since: str | None, metric: str | None, levels: bool, results: str, machine: str | None
) -> Trend:
    """Return the trend of one machine's kept results, with a warning about the number of results of other machines."""
    from dbdyno.builds.results.place import place_of, results_in
    from dbdyno.cli.results.options import report_refused
    from dbdyno.cli.runs.choose import of_plan, since_time
    from dbdyno.study.analysis.trend import trend_of

    found, refused = results_in(place_of(results))
    report_refused(refused)
    mine = since_time(of_plan(found, plan, folder), since)
    one = machine or (mine[-1].machine if mine else None)
    own = [run for run in mine if run.machine == one]
    if not own:
        raise EvidenceError(
            f"{results} has no result of this plan" + (f" on machine {machine}" if machine and mine else ""),
            where=plan,
            next_step=f"list the results with `dbdyno results log {results}`, or add a run with `dbdyno results push`",
        )
    model = trend_of(own, plan, metric, levels=levels)
    if len(own) < len(mine):
        others = len({run.machine for run in mine} - {one})
        text = f"{len(mine) - len(own)} of {len(mine)} results come from {others} machine(s) other than {one}"
        model["warnings"].append(
            {"code": "machine", "text": text, "next": "use --ran-on NAME to follow the results of another machine"}
        )
    return model
