"""`dbdyno move oracle://... FOLDER`: copy a table of an Oracle database to Parquet files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.cli.move import options as shared
from dbdyno.cli.move.finish import finish
from dbdyno.cli.move.load import LOAD_OPTIONS, refuse, split_names

if TYPE_CHECKING:
    from dbdyno.move.ledger.folder import Ledger
    from dbdyno.move.reading.run import JobOptions

SCHEME = "oracle://"
REFUSED_OPTIONS = (
    *LOAD_OPTIONS,
    "patterns",
    "query",
    "where",
    "as_text",
    "hold",
    "into",
    "job",
    "partition_by",
    "dry_run",
)


def export_table(source: str, to: str, level: str, options: JobOptions, other_options: Mapping[str, Any]) -> None:
    """Copy a table to Parquet files as a new job."""
    from dbdyno.move.engines.oracle.job import begin, run_job
    from dbdyno.move.engines.oracle.source import Address, without_password
    from dbdyno.move.engines.postgres.source import Request

    if "://" in to or to == "-" or Path(to).suffix in (".arrow", ".csv"):
        raise click.UsageError(
            "a move from Oracle writes a folder of Parquet files: name a folder, and load it into a server afterwards"
        )
    refuse(other_options, REFUSED_OPTIONS, "does not work with Oracle")
    _refuse_level(level, other_options["engine"])
    request, address = (
        Request(tables=other_options["tables"], columns=split_names(other_options["columns"])),
        Address.parse(source),
    )
    ledger = begin(address, without_password(source), request, Path(to), options)
    with shared.report_interruption(Path(to)):
        run_job(address, ledger, options)
    finish(ledger, level)


def resume_job(
    job: Path, source: str, ledger: Ledger, options: JobOptions, level: str, *, restart: bool, as_of_now: bool
) -> None:
    """Resume a job, reading the rows as of the job's SCN."""
    from dbdyno.move.engines.oracle.job import run_job
    from dbdyno.move.engines.oracle.source import Address
    from dbdyno.move.reading.resume import refuse_ended

    if restart or as_of_now:
        raise click.UsageError(
            "a job from Oracle continues as of its SCN: start a new job to read the table as of another SCN"
        )
    _refuse_level(level, "here")
    ledger.refuse_foreign()
    refuse_ended(ledger)
    ledger.begin_attempt("resumed", options.workers, options.memory_bytes)
    with shared.report_interruption(job):
        run_job(Address.parse(source), ledger, options)
    finish(ledger, level)


def _refuse_level(level: str, engine: str) -> None:
    if level in ("source", "target") or engine != "here":
        raise click.UsageError("Oracle is read only once: use --verify files to read the files again")
