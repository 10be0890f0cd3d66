"""`dbdyno move abort JOB`: give a job up."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.move_options import job_argument
from dbdyno.errors import MoveError


@click.command("abort")
@job_argument
def command(job: Path) -> None:
    """Give up the job in the folder JOB that is not complete: its files are removed, its ledger stays."""
    from dbdyno.move.ledger import Ledger

    ledger = Ledger.open(job)
    ledger.refuse_foreign()
    if ledger.manifest["status"] == "complete":
        raise MoveError("the job is complete", where=str(job), next_step="remove the folder if you do not want it")
    with ledger.held():
        ledger.sweep()
        ledger.forget()
        ledger.manifest["status"] = "aborted"
        ledger.save()
    click.echo(f"Job {ledger.plan['id']} is aborted; its files are removed.")
    if ledger.plan.get("into"):
        click.echo(
            f"On {ledger.plan['into']['target']} its staging tables are left:"
            f" drop table dbdyno_move_{ledger.plan['id']} cascade, in the schema of the table."
        )
