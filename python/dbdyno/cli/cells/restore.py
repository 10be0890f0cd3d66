"""`dbdyno cells restore`: restore the IORM plans that a run on cells left changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.cli.cells.options import access_of, access_options, confirm
from dbdyno.cli.output import folder_option

if TYPE_CHECKING:
    from dbdyno.cells.hosts import Host
    from dbdyno.cells.iorm_switch import CurrentPlan, PlanUndo


@click.command()
@click.argument("name", metavar="RUN")
@folder_option
@click.option("--dry-run", is_flag=True, help="Show what would be sent; change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Restore the plans without asking.")
@access_options
def command(name: str, folder: Path, dry_run: bool, yes: bool, **ways: Any) -> None:
    """Restore the IORM plans that the cells had before RUN, a run of flash-log.

    Use it after a run whose machine stopped, or whose cells could not be reached at its end. Every cell is checked
    first, at the addresses from the options and your SSH configuration, not at those in RUN. A plan that somebody else
    has set since then is not changed. Exit 2 if a cell does not show the plan that it had before RUN.

    \b
    dbdyno cells restore last --dry-run
    """
    from dbdyno.base.errors import CellsError
    from dbdyno.bench.cells.restore import checked_access, undo_of
    from dbdyno.evidence.run import find_run
    from dbdyno.evidence.trust import refuse_foreign

    run = find_run(name, folder)
    refuse_foreign(run.path)
    undo = undo_of(run)
    if run.status == "running":
        raise CellsError(
            "is still running, and restores the plans when it ends",
            where=run.id,
            next_step="wait until the run has ended, or stop it with Ctrl-C",
        )
    undo = undo.with_access(checked_access(run, undo, access_of(ways)), ways["user"])
    looks = undo.current_plans()
    _show(undo, looks)
    left = [host for host, look in looks.items() if look.state == "ours"]
    well = sum(look.state == "found" for look in looks.values())
    if not left:
        unread = any(look.state == "unread" for look in looks.values())
        click.echo(f"nothing to restore{' on the cells that answered' if unread else ''}")
    elif dry_run:
        click.echo("nothing was changed")
    else:
        if not yes:
            confirm()
        well += _put_back(undo.only(left))
    if well + (len(left) if dry_run else 0) < len(looks):
        raise click.exceptions.Exit(2)
    if not dry_run:
        run.save(restored=True)


def _show(undo: PlanUndo, plans: dict[Host, CurrentPlan]) -> None:
    from dbdyno.cells.iorm_plan import alter_command

    for host, directives in undo.directives_before.items():
        look = plans[host]
        if look.state == "found":
            click.echo(f"{host.name}: as it was found")
        elif look.state == "ours":
            click.echo(f"{host.name}: to be restored: {alter_command(directives)}")
        elif look.state == "other":
            click.echo(f"{host.name}: left unchanged, because somebody else set its plan: {look.words}")
            click.echo(f"  next: to restore it manually: {alter_command(directives)}", err=True)
        else:
            click.echo(f"dbdyno: {host.name}: {look.words}", err=True)


def _put_back(undo: PlanUndo) -> int:
    """Restore the plans, report each cell, and return the number of cells that show their previous plan again."""
    problems = undo.restore_plans()
    for host in undo.directives_before:
        if host in problems:
            click.echo(f"dbdyno: {host.name}: {problems[host]}", err=True)
        else:
            click.echo(f"{host.name}: put back")
    return len(undo.cells) - len(problems)
