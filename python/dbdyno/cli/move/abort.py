"""`dbdyno move abort JOB`: abandon a job."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.errors import MoveError
from dbdyno.base.json_types import JsonObject
from dbdyno.cli.move.mariadb import is_mariadb
from dbdyno.cli.move.options import job_argument


@click.command("abort")
@job_argument
def command(job: Path) -> None:
    """Abort the incomplete job in the folder JOB: its files are removed, its ledger stays."""
    from dbdyno.move.ledger.folder import Ledger

    ledger = Ledger.open(job)
    ledger.refuse_foreign()
    if ledger.manifest["status"] == "complete":
        raise MoveError(
            "the job is complete, so it cannot be aborted",
            where=str(job),
            next_step="remove its folder if you do not need it any more",
        )
    with ledger.locked():
        ledger.sweep()
        ledger.forget()
        ledger.manifest["status"] = "aborted"
        ledger.save()
    removed = "" if ledger.plan.get("into") else "; its files are removed"
    click.echo(f"Job {ledger.plan['id']} is aborted{removed}.")
    if ledger.plan.get("into"):
        click.echo(_leftover_sentence(ledger.plan))


def _leftover_sentence(plan: JsonObject) -> str:
    """Return a sentence about what to drop on the target, with its schema."""
    into = plan["into"]
    if plan.get("database"):
        return f"The database {into['target']} contains only part of the data: drop it."
    if is_mariadb(into["target"]):
        return f"On {into['target']} its staging tables are left: those named dbdyno_move_{plan['id']}_*."
    if len(plan["tables"]) > 1:
        return f"On {into['target']} its staging tables are left beside each table: dbdyno_move_{plan['id']}_*."
    place = into["table"].rpartition(".")[0]
    name = f"{place}.dbdyno_move_{plan['id']}" if place else f"dbdyno_move_{plan['id']}"
    found = "" if place else " (in the schema that holds the table)"
    return f"On {into['target']} its staging tables are left: drop table {name} cascade{found}."
