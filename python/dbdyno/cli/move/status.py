"""`dbdyno move status JOB`: show what a job has finished."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.move.options import job_argument
from dbdyno.cli.output import Output, format_options, show_rows


@click.command("status")
@job_argument
@click.option("--cost", is_flag=True, help="Show instead what each session cost the source server.")
@format_options
def command(job: Path, cost: bool, output: Output) -> None:
    """Show what the job in the folder JOB has finished, and what to do next. Nothing is changed."""
    from dbdyno.move.ledger.folder import Ledger
    from dbdyno.move.ledger.next_steps import resume_command
    from dbdyno.move.ledger.summary import table_rows
    from dbdyno.move.proof.statement import recorded_proof

    ledger = Ledger.open(job)
    if cost:
        sessions = ledger.manifest.get("cost", [])
        show_rows([{**one, "waits": _waits(one["waits"])} for one in sessions], output)
        return
    records, plan = ledger.records(), ledger.plan
    into = plan.get("into")
    rows = [
        {
            "table": table["table"],
            "chunks": table["chunks_in_all"],
            "finished": table["chunks"],
            "rows": table["rows"],
            **({} if into else {"file_bytes": table["file_bytes"]}),
        }
        for table in table_rows(plan, records)
    ]
    show_rows(rows, output)
    if output.is_screen:
        state = ledger.manifest["status"]
        if state == "running" and not ledger.is_locked():
            state = f"ended before it was complete; next: {resume_command(ledger)}"
        click.echo(f"\nJob {plan['id']}: {state}. Source: {plan['source']}.")
        if plan.get("place"):
            click.echo(f"Files: {plan['place']}.")
        if into:
            table = "each table" if into["table"] == "*" else into["table"]
            click.echo(f"Target: {table} of {into['target']}, {into['mode']}.")
        proved = recorded_proof(ledger)
        click.echo(proved.sentences()[1] if records else "Nothing is finished yet.")
        if proved.cost is not None:
            click.echo(proved.cost)


def _waits(waits: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in waits.items())
