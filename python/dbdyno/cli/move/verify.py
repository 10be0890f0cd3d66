"""`dbdyno move verify JOB`: check whether the files are as they were written."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.move.finish import show
from dbdyno.cli.move.options import job_argument


@click.command("verify")
@job_argument
def command(job: Path) -> None:
    """Read the files of the job in the folder JOB again, and compare their rows and hashes with the job's records.

    Exit 1 if something differs. The source can only be compared in the job's own snapshot, with `--verify source` when
    the job runs.
    """
    from dbdyno.move.ledger.folder import Ledger
    from dbdyno.move.proof.statement import check_files, recorded_proof

    ledger = Ledger.open(job)
    show(check_files(ledger, recorded_proof(ledger)))
