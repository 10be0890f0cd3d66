"""`dbdyno run ... --target cells:...`: looks at the cells, shows what would change, asks, runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.errors import PlanError

if TYPE_CHECKING:
    from dbdyno.evidence import Run
    from dbdyno.study.plan.cells import CellsPlan
    from dbdyno.study.run.cells_survey import Survey
    from dbdyno.study.run.progress import Progress

INTERRUPTED = (
    "interrupted: the plans of the cells are as they were; whole blocks are kept; "
    "`dbdyno runs` lists the run, `dbdyno run --resume last` finishes it"
)


def plan_on_cells(
    what: str | None,
    target: str,
    options: Mapping[str, str],
    quick: bool,
    blocks: int | None,
    aa: bool,
) -> CellsPlan:
    """The plan of a study on cells."""
    from dbdyno.study.plan.cells import cells_study

    plan = cells_study(what or "", target, options, quick=quick, blocks=blocks)
    return plan.same_twice() if aa else plan


def start_on_cells(
    plan: CellsPlan,
    ways: dict[str, Any],
    out: Path,
    progress: Progress,
    seed: int | None,
    dry_run: bool,
    yes: bool,
) -> Run | None:
    """Runs a plan on cells once it is confirmed; None after a dry run."""
    from dbdyno.cells.hosts import hosts_of
    from dbdyno.cli.cells_options import access_of
    from dbdyno.study.run.cells import start_on_cells as start
    from dbdyno.study.run.cells_survey import survey

    access = access_of(ways)
    found = survey(plan, hosts_of([plan.hosts], user=ways["user"]), access)
    if not _agreed(plan, found, out, dry_run, yes):
        return None
    return start(plan, found, access, out, progress, seed=seed)


def resume_on_cells(
    run: Run,
    target: str | None,
    ways: dict[str, Any],
    progress: Progress,
    dry_run: bool,
    yes: bool,
) -> Run | None:
    """Runs the rest of a run on cells once it is confirmed; None after a dry run."""
    from dbdyno.cli.cells_options import access_of
    from dbdyno.study.plan.cells import plan_of
    from dbdyno.study.run.cells import resume_on_cells as resume
    from dbdyno.study.run.cells_restore import undo_of, way_of
    from dbdyno.study.run.cells_survey import survey
    from dbdyno.study.run.execute import refuse_ended

    if target is not None:
        raise PlanError("goes on with its own cells; leave --target out", where=run.id)
    refuse_ended(run)
    undo = undo_of(run)
    access = way_of(run, undo, access_of(ways))
    plan = plan_of(run)
    found = survey(plan, list(undo.reached(access, ways["user"]).found), access)
    if not _agreed(plan, found, run.path.parent, dry_run, yes):
        return None
    return resume(run, plan, found, access, progress)


def _agreed(plan: CellsPlan, found: Survey, folder: Path, dry_run: bool, yes: bool) -> bool:
    """Shows what would be done, and asks; False after a dry run. Raises `CellsError` where the
    plans of an earlier run below `folder` are still in force."""
    from dbdyno.cli.cells_options import confirm
    from dbdyno.study.run.cells_restore import refuse_cut
    from dbdyno.study.run.cells_survey import describe, refuse_held

    refuse_cut(folder, found.found)
    refuse_held(plan, found)
    if dry_run:
        click.echo(describe(plan, found), nl=False)
        click.echo("nothing was changed")
    elif not yes:
        click.echo(describe(plan, found), nl=False, err=True)
        confirm()
    return not dry_run
