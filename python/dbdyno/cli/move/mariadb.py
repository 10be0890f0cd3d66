"""`dbdyno move` with a MariaDB server: out of it, into it, and from server to server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.cli.move import options as shared
from dbdyno.cli.move.finish import finish
from dbdyno.cli.move.load import READ_OPTIONS, file_or_stdin, load_request, refuse, refuse_as_job, show
from dbdyno.cli.move.plan import show_plan, show_table, show_target
from dbdyno.cli.move.request import request_for_one_file, request_of
from dbdyno.cli.move.transfer import target_of

if TYPE_CHECKING:
    from dbdyno.bench.mariadb.server import MariaDB
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.engines.postgres.source import Request
    from dbdyno.move.ledger.folder import Ledger
    from dbdyno.move.loading.request import LoadRequest
    from dbdyno.move.reading.run import JobOptions, Plan

URLS = ("mariadb://", "mysql://")
REFUSED_OPTIONS = ("defer_indexes",)


def is_mariadb(dsn: str) -> bool:
    """Return True if a connection string names a MariaDB server."""
    return dsn.startswith(URLS)


def server(dsn: str) -> Postgres | MariaDB:
    """Return the server that a connection string names.

    Raises:
        TargetError: the server does not answer.
    """
    from dbdyno.bench.mariadb.server import MariaDB
    from dbdyno.bench.postgres.server import Postgres

    return MariaDB.open(dsn) if is_mariadb(dsn) else Postgres.open(dsn, keep_first=True)


def export_tables(source: str, folder: Path, level: str, options: JobOptions, other_options: Mapping[str, Any]) -> None:
    """Copy tables of a MariaDB server to Parquet files."""
    from dbdyno.bench.mariadb.server import MariaDB
    from dbdyno.move.engines.mariadb.job import begin, file_chunk_builder, run_job
    from dbdyno.move.proof.statement import compare_rereads

    refuse(
        other_options, ("hold",), "works only with PostgreSQL: a snapshot of MariaDB ends with the session that took it"
    )
    target, request = MariaDB.open(source), request_of(other_options)
    if other_options["dry_run"]:
        _show_plan(target, request, options)
        return
    ledger = begin(target, request, folder, options)
    with shared.report_interruption(folder):
        second = run_job(target, ledger, options, file_chunk_builder(folder, again=level == "source"))
    finish(ledger, level, lambda proved: compare_rereads(ledger, proved, second))


def write(source: str, to: str, level: str, options: JobOptions, other_options: Mapping[str, Any]) -> None:
    """Copy one table of a MariaDB server to one Arrow file, or to stdout."""
    from dbdyno.bench.mariadb.server import MariaDB
    from dbdyno.move.engines.mariadb.single import write as write_one

    request = request_for_one_file(level, other_options)
    for line in write_one(MariaDB.open(source), request, to, options, read_again=level == "files").sentences():
        click.echo(line, err=to == "-")


def load_into_table(source: str, to: str, level: str, options: JobOptions, other_options: Mapping[str, Any]) -> None:
    """Load files into a MariaDB table."""
    from dbdyno.bench.mariadb.server import MariaDB
    from dbdyno.move.engines.mariadb.dry_run import describe_load
    from dbdyno.move.engines.mariadb.load import load_files
    from dbdyno.move.engines.mariadb.load_job import load

    refuse(other_options, READ_OPTIONS, "works only if SOURCE is a connection string")
    if len(other_options["tables"]) != 1:
        raise click.UsageError("name the table to load with one --table")
    _refuse_into(other_options)
    goal = load_request(other_options["tables"][0], other_options)
    if other_options["job"] is not None:
        refuse_as_job(source, other_options)
        with shared.report_interruption(Path(other_options["job"])):
            show(load(MariaDB.open(to), Path(source), goal, Path(other_options["job"]), options, level))
        return
    with file_or_stdin(source) as path:
        if other_options["dry_run"]:
            for line in describe_load(MariaDB.open(to), path, goal):
                click.echo(line)
            return
        show(load_files(MariaDB.open(to), path, goal, options, level))


def transfer_rows(source: str, to: str, level: str, options: JobOptions, other_options: Mapping[str, Any]) -> None:
    """Move rows between two servers, at least one of which is MariaDB."""
    from dbdyno.move.engines.mariadb.transfer import move

    if is_mariadb(to):
        _refuse_into(other_options)
    request = request_of(other_options)
    goal = load_request(target_of(request, other_options["into"]), other_options)
    if other_options["dry_run"]:
        _show_across(server(source), request, options, server(to), goal)
        return
    job = shared.job_folder(other_options)
    with shared.report_interruption(job):
        show(move(server(source), request, server(to), goal, job, options, level))


def _refuse_into(other_options: Mapping[str, Any]) -> None:
    from dbdyno.move.loading.request import PARTITIONS

    why = "MariaDB commits at each change of an index, so a failed load could not restore the indexes"
    refuse(other_options, REFUSED_OPTIONS, f"works only if the target is PostgreSQL; {why}")
    if other_options["mode"] == PARTITIONS:
        why = "MariaDB exchanges one partition at a time, and commits each exchange"
        raise click.UsageError(f"--mode {PARTITIONS} works only if the target is PostgreSQL; {why}")


def resume_job(
    job: Path,
    source: str,
    to: str | None,
    ledger: Ledger,
    options: JobOptions,
    level: str,
    *,
    restart: bool,
    as_of_now: bool,
) -> None:
    """Resume a job that reads from or writes to MariaDB."""
    from dbdyno.bench.mariadb.server import MariaDB
    from dbdyno.move.engines.mariadb.job import file_chunk_builder, resume
    from dbdyno.move.engines.mariadb.transfer import resume_transfer
    from dbdyno.move.proof.statement import compare_rereads
    from dbdyno.move.reading.resume import refuse_ended

    with shared.report_interruption(job):
        if ledger.plan.get("into"):
            if to is None:
                raise click.UsageError("the job loads rows into another server: name the target with --target")
            again = {"restart": restart, "as_of_now": as_of_now}
            show(resume_transfer(server(source), server(to), ledger, options, level=level, **again))
            return
        refuse_ended(ledger)
        pieces = file_chunk_builder(job, again=level == "source")
        target = MariaDB.open(source)
        second = resume(target, ledger, options, pieces, restart=restart, as_of_now=as_of_now)
    finish(ledger, level, lambda proved: compare_rereads(ledger, proved, second))


def _show_across(
    source: Postgres | MariaDB, request: Request, options: JobOptions, target: Postgres | MariaDB, goal: LoadRequest
) -> None:
    """Print what would be moved, and what each table would become at the other server."""
    from dbdyno.bench.mariadb.server import MariaDB
    from dbdyno.move.engines.mariadb.dry_run import tables_of

    def show_result(plan: Plan, place: int) -> None:
        if not isinstance(target, MariaDB):
            show_target(plan, place, target, goal)
            return
        for line in tables_of(target, plan, goal)[place]:
            click.echo(line)

    if isinstance(source, MariaDB):
        _show_plan(source, request, options, show_result)
    else:
        show_plan(source, request, options, show_result)


def _show_plan(
    target: MariaDB, request: Request, options: JobOptions, show_result: Callable[[Plan, int], None] | None = None
) -> None:
    import contextlib

    from dbdyno.move.engines.mariadb.job import notes_before, plan_of
    from dbdyno.move.engines.mariadb.source import connect, select_sql
    from dbdyno.move.reading.run import new_id

    job = new_id()
    with contextlib.closing(connect(target, job)) as conn:
        plan = plan_of(target, conn, request, job, options)
    for line in notes_before(plan)[1:]:
        click.echo(line)
    for place in range(len(plan.tables)):
        first = next(chunk for chunk in plan.chunks if chunk.table == place)
        statement = select_sql(plan.tables, first)
        show_table(plan, place, lambda column: column.mariadb_type, statement, show_result)
