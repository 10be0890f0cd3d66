"""`dbdyno move resume JOB`: resume an interrupted job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.cli.move import database
from dbdyno.cli.move import options as shared
from dbdyno.cli.move import oracle as move_oracle
from dbdyno.cli.move.finish import finish
from dbdyno.cli.move.load import show
from dbdyno.cli.move.mariadb import is_mariadb, resume_job
from dbdyno.cli.move.wide import resume_load

if TYPE_CHECKING:
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.ledger.folder import Ledger
    from dbdyno.move.reading.run import JobOptions

LOAD = "load.json"
"""File in the folder of a job that loads into Cassandra."""


@click.command("resume")
@shared.job_argument
@click.option(
    "--source",
    help="Connection string of the source. The job does not store it; leave it out for a job that loads files.",
)
@click.option("--target", "to", help="Connection string of the target, for a job that loads into a server.")
@click.option("--restart", is_flag=True, help="Read all rows again, in one new snapshot.")
@click.option("--as-of-now", is_flag=True, help="Read only the missing chunks, in a new snapshot.")
@shared.verify_option
@shared.worker_options
@shared.result_option
def command(
    job: Path,
    source: str | None,
    to: str | None,
    restart: bool,
    as_of_now: bool,
    level: str,
    workers: int,
    memory: int,
    rate_limit: int | None,
    form: str | None,
) -> None:
    """Resume the job in the folder JOB.

    The job's snapshot ends with the process that held it. Finished chunks are then as of the old instant, and you must
    choose: `--restart` is exact; `--as-of-now` repeats nothing, and is exact only if the table has not changed.
    """
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.ledger.folder import Ledger
    from dbdyno.move.proof.statement import check_source
    from dbdyno.move.reading.resume import resume
    from dbdyno.move.spark.remote_jobs import complete_remote_job, remote_job_builder

    if restart and as_of_now:
        raise click.UsageError("--restart and --as-of-now exclude each other")
    how = shared.job_options(workers, memory, rate_limit)
    if (job / LOAD).is_file():
        resume_load(job, _required_source(source), to, level, how)
        return
    ledger = Ledger.open(job)
    if ledger.plan.get("database"):
        _database(ledger, source, to, how, level, form, restart=restart, as_of_now=as_of_now)
        return
    database.refuse_without_database({"form": form})
    if ledger.plan.get("files"):
        if source is not None or as_of_now:
            raise click.UsageError("the job loads files, whose names it has stored: leave --source and --as-of-now out")
        _files(to, ledger, how, level, restart=restart)
        return
    source = _required_source(source)
    if source.startswith(move_oracle.SCHEME):
        move_oracle.resume_job(job, source, ledger, how, level, restart=restart, as_of_now=as_of_now)
        return
    if is_mariadb(source) or (to is not None and is_mariadb(to)):
        resume_job(job, source, to, ledger, how, level, restart=restart, as_of_now=as_of_now)
        return
    target = Postgres.open(source, keep_first=True)
    if ledger.plan.get("into"):
        _across(target, to, ledger, how, level, restart=restart, as_of_now=as_of_now)
        return
    if to is not None or level == "target":
        raise click.UsageError("--target and --verify target work only with jobs from server to server")
    with (
        shared.report_interruption(job),
        remote_job_builder(ledger) as make,
        resume(target, ledger, how, restart=restart, as_of_now=as_of_now, make=make) as snapshot,
    ):
        if make is not None:
            complete_remote_job(ledger)
        finish(ledger, level, lambda proved: check_source(target, ledger, snapshot, how, proved))


def _database(
    ledger: Ledger,
    source: str | None,
    to: str | None,
    options: JobOptions,
    level: str,
    form: str | None,
    *,
    restart: bool,
    as_of_now: bool,
) -> None:
    if as_of_now:
        raise click.UsageError(
            "--as-of-now does not work with a database, whose schema and rows must come from the same instant"
        )
    if to is None:
        raise click.UsageError("the job loads rows into another server: name the target with --target")
    with shared.report_interruption(ledger.folder):
        database.resume_job(
            ledger, _required_source(source), to, options, database.level_of(level), form, restart=restart
        )


def _required_source(source: str | None) -> str:
    if source is None:
        raise click.UsageError("the job reads from a server: name it with --source")
    return source


def _files(to: str | None, ledger: Ledger, options: JobOptions, level: str, *, restart: bool) -> None:
    if to is None:
        raise click.UsageError("the job loads rows into a server: name it with --target")
    with shared.report_interruption(ledger.folder):
        if is_mariadb(to):
            from dbdyno.bench.mariadb.server import MariaDB
            from dbdyno.move.engines.mariadb.load_job import resume_load as load_into_mariadb

            show(load_into_mariadb(MariaDB.open(to), ledger, options, level, restart=restart))
            return
        from dbdyno.bench.postgres.server import Postgres
        from dbdyno.move.loading.load_job import resume_load as load_into_postgres

        server = Postgres.open(to, keep_first=True)
        show(load_into_postgres(server, ledger, options, level, restart=restart))


def _across(
    source: Postgres, to: str | None, ledger: Ledger, options: JobOptions, level: str, *, restart: bool, as_of_now: bool
) -> None:
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.loading.transfer import resume_transfer

    if to is None:
        raise click.UsageError("the job loads rows into another server: name the target with --target")
    target, again = Postgres.open(to, keep_first=True), {"restart": restart, "as_of_now": as_of_now}
    show(resume_transfer(source, target, ledger, options, level=level, **again))
