"""`dbdyno run ... --target cells:...`: looks at the cells, shows what would change, asks, runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dbdyno.evidence import Run
    from dbdyno.study.cells_plan import CellsPlan
    from dbdyno.study.progress import Progress

INTERRUPTED = (
    "interrupted: the plans of the cells are as they were; whole blocks are kept; "
    "`dbdyno runs` lists the run, `dbdyno report last` shows it"
)


def plan_on_cells(
    what: str | None, target: str, options: Mapping[str, str], quick: bool, blocks: int | None,
    aa: bool,
) -> CellsPlan:  # fmt: skip
    """The plan of a study on cells."""
    from dbdyno.study.cells_plan import cells_study

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
    from dbdyno.study import execute_cells
    from dbdyno.study.cells_survey import describe, survey

    access = access_of(ways)
    hosts = hosts_of([plan.hosts], user=ways["user"])
    found = survey(plan, hosts, access)
    if dry_run:
        click.echo(describe(plan, found), nl=False)
        click.echo("nothing was changed")
        return None
    if not yes:
        click.echo(describe(plan, found), nl=False, err=True)
        if not click.confirm("Do it?", err=True):
            raise click.exceptions.Exit(2)
    return execute_cells.start_on_cells(plan, found, access, out, progress, seed=seed)
