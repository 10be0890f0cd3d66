"""Selection of runs: those of a plan, those with the same plan as a run, those since a time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from dbdyno.evidence.run import Run, find_run, list_runs

AnyRun = TypeVar("AnyRun", bound=Run)


def choose_runs(folder: Path, plan: Path | str | None, since: str | None) -> list[Run]:
    """Return the runs since a time, oldest first; `plan` (a file or a run) restricts them to runs of that plan.

    If `plan` names a run, the folder that contains that run is searched, otherwise `folder`.
    """
    if plan is not None and not _is_file(plan):
        folder = find_run(str(plan), folder).path.absolute().parent
    found = list(list_runs(folder))
    if plan is not None:
        found = of_plan(found, plan, folder)
    return sorted(since_time(found, since), key=lambda run: str(run.manifest.started_at))


def of_plan(runs: Iterable[AnyRun], plan: Path | str, folder: Path) -> list[AnyRun]:
    """Return the runs of a plan file, or those with the same plan as a run, which is looked up in `folder`."""
    from dbdyno.study.plan.runs_of_plan import are_runs_alike, is_same_plan, runs_of_builds

    if _is_file(plan):
        from dbdyno.study.plan.builds import text_for_builds
        from dbdyno.study.plan.file import read_plan

        if (text := text_for_builds(Path(plan))) is not None:
            return runs_of_builds(text, runs)
        given = read_plan(Path(plan))
        return [run for run in runs if is_same_plan(given, run.manifest)]
    one = find_run(str(plan), folder)
    return [run for run in runs if are_runs_alike(one, run)]


def since_time(runs: Iterable[AnyRun], since: str | None) -> list[AnyRun]:
    """Return the runs that began at the given time or later; all runs if the time is None."""
    from dbdyno.study.plan.runs_of_plan import span_start

    first = "" if since is None else span_start(since)
    return [run for run in runs if str(run.manifest.started_at) >= first]


def _is_file(plan: Path | str) -> bool:
    """Return True if `plan` names a plan file rather than a run."""
    return Path(plan).is_file() or Path(plan).suffix.lower() == ".toml"
