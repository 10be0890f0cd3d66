"""`dbdyno restore`: restore the server settings that a killed run left changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base.errors import TargetError
from dbdyno.cli.output import folder_option

if TYPE_CHECKING:
    from dbdyno.bench.postgres.leftovers import Finding, Source
    from dbdyno.bench.restore import UnrestoredServer


@click.command()
@click.argument("name", metavar="RUN", required=False)
@click.option("--all", "every", is_flag=True, help="Restore the settings of all runs on this server.")
@click.option("--target", required=True, help="The server, e.g. postgresql://user@host/db or mariadb://user@host/db.")
@folder_option
@click.option("--dry-run", is_flag=True, help="Show what would be sent; change nothing.")
@click.option(
    "--keep",
    is_flag=True,
    help="Keep the current values: delete the record of the previous values, and change nothing on the server.",
)
@click.option("-y", "--yes", is_flag=True, help="Restore the settings without asking.")
def command(name: str | None, every: bool, target: str, folder: Path, dry_run: bool, keep: bool, yes: bool) -> None:
    """Restore the server settings that RUN changed, if it was killed together with its guardian.

    The command compares first: a setting that somebody else has changed since then is not changed. For storage cells
    use `dbdyno cells restore`.

    \b
    dbdyno restore last --target postgresql://me@db1/app --dry-run
    """
    from dbdyno.bench.postgres.leftovers import delete_record
    from dbdyno.bench.restore import open_unrestored
    from dbdyno.cli.cells.options import confirm

    if (name is None) != every:
        raise TargetError("expected one run or --all", next_step="list the runs with `dbdyno runs`")
    with open_unrestored(target) as server:
        owed, findings = server.find_unrestored(_choose_sources(name, folder))
        if not owed:
            click.echo("there are no settings to restore on this server")
            return
        _refuse_alive(owed)
        _show(server, findings)
        left = [one for one in findings if one.state == "ours"]
        if dry_run:
            click.echo("nothing was changed")
            return
        if left and not keep:
            if not yes:
                confirm()
            server.restore(left)
    for source in owed:
        delete_record(source)
    click.echo("forgotten: the settings stay as they are" if keep else "everything is restored")


def _choose_sources(name: str | None, folder: Path) -> list[Source]:
    from dbdyno.bench.postgres.leftovers import sources
    from dbdyno.evidence.run import find_run

    known = sources(folder)
    if name is None:
        return known
    run = find_run(name, folder).path.resolve()
    return [one for one in known if one.run == run]


def _refuse_alive(owed: list[Source]) -> None:
    for source in owed:
        record = source.record
        if record.state == "held":
            raise TargetError(
                "is still running, and restores its settings when it ends",
                where=record.run,
                next_step="wait until the run has ended, or stop it with Ctrl-C",
            )
        if record.state == "retrying":
            raise TargetError(
                f"its guardian (process {record.guardian['pid']}) is still restoring, {record.tries} tries so far:"
                f" {record.problem or 'it has just begun'}",
                where=record.run,
                next_step="correct this problem; the guardian tries again within a minute",
            )


def _show(server: UnrestoredServer, findings: list[Finding]) -> None:
    for one in findings:
        if one.state == "back":
            click.echo(f"{one.name}: as it was, {one.found}")
        elif one.state == "ours":
            click.echo(f"{one.name}: {one.found}, was {one.kept.was}; {server.restore_statement(one)}")
        else:
            click.echo(
                f"{one.name}: left unchanged at {one.found}: somebody else has set it since (it was {one.kept.was})"
            )
