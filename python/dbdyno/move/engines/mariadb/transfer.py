"""Transfers between servers, at least one of which is MariaDB, with the splits, ledger and modes used for PostgreSQL.

Each chunk goes into its own staging table beside the target, recreated whenever the chunk is read; one transaction
publishes all of them.

    MariaDB -> PostgreSQL    rows in COPY's binary format, forwarded as they are encoded
    any -> MariaDB           rows decoded, then sent as lines of LOAD DATA
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dbdyno import _core
from dbdyno.base.core_types import MoveChunk
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.mariadb.server import MariaDB
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.mariadb import job as from_mariadb
from dbdyno.move.engines.mariadb.load import make_target, open_session, server_spec
from dbdyno.move.engines.mariadb.source import select_sql
from dbdyno.move.engines.mariadb.staged_rows import (
    drop_all,
    heads_of,
    mark_complete,
    place_of,
    publish_staged,
    recreate_staging,
    requests_of_plan,
)
from dbdyno.move.engines.mariadb.target import TargetTable, database_of, is_published, load_sql, table_exists
from dbdyno.move.engines.postgres.source import Request, copy_sql
from dbdyno.move.engines.postgres.staging import server_spec as server_spec_of_postgres
from dbdyno.move.engines.postgres.target import TargetTable as PostgresTable
from dbdyno.move.ledger.folder import Ledger
from dbdyno.move.loading import staged_rows, transfer
from dbdyno.move.loading.files import rejects_of
from dbdyno.move.loading.request import LoadRequest, LoadResult, MultiTableResult
from dbdyno.move.reading.resume import refuse_ended, resume
from dbdyno.move.reading.run import JobBuilder, JobOptions, Plan, Reading, begin, run_job, table_specs
from dbdyno.move.reading.splits import Chunk


def move(
    source: Postgres | MariaDB,
    request: Request,
    target: Postgres | MariaDB,
    load_request: LoadRequest,
    folder: Path,
    options: JobOptions,
    level: str,
) -> LoadResult | MultiTableResult:
    """Start a new job and run it from its snapshot to the commit; if it fails, the target is unchanged.

    Raises:
        MoveError: The move was refused or failed.
    """
    rejects_of(load_request, [])
    asked = staged_rows.target_description(load_request, target.safe_dsn)
    if isinstance(target, Postgres):
        assert isinstance(source, MariaDB)
        with transfer.target_session(target, load_request) as conn:
            ledger = from_mariadb.begin(source, request, folder, options, {**asked, "server": target.identity(conn)})
            plan = Plan.from_json(ledger.plan)
            try:
                there = staged_rows.target_tables(conn, plan, load_request)
                transfer.make_stages(conn, plan, there)
            except BaseException:
                ledger.discard()
                raise
            from_mariadb.run_job(source, ledger, options, _to_postgres(target, conn, there), completes=False)
            return staged_rows.publish_staged(target, conn, ledger, load_request, options, level)
    with contextlib.ExitStack() as stack:
        conn = stack.enter_context(open_session(target, "begins"))
        asked["server"] = target.identity(conn)
        if isinstance(source, MariaDB):
            ledger = from_mariadb.begin(source, request, folder, options, asked)
        else:
            ledger, snapshot = begin(source, request, folder, options, into=asked)
            stack.enter_context(snapshot)
        try:
            plan = Plan.from_json(ledger.plan)
            goals = _make_targets(stack, conn, target, plan, requests_of_plan(plan, load_request))
        except BaseException:
            ledger.discard()
            raise
        if isinstance(source, MariaDB):
            from_mariadb.run_job(source, ledger, options, _lines(target, conn, load_request), completes=False)
        else:
            with snapshot:
                run_job(source, ledger, snapshot, options, _lines_of_postgres(target, conn, load_request))
        return publish_staged(target, conn, ledger, goals, load_request, options, level)


def _make_targets(
    stack: contextlib.ExitStack, conn: Any, target: MariaDB, plan: Plan, intos: Sequence[LoadRequest]
) -> list[TargetTable]:
    """Find or create the target tables; those created here are dropped if the job fails."""
    each = enumerate(intos)
    return [stack.enter_context(make_target(conn, target, one, heads_of(plan, place))) for place, one in each]


def resume_transfer(
    source: Postgres | MariaDB,
    target: Postgres | MariaDB,
    ledger: Ledger,
    options: JobOptions,
    *,
    restart: bool,
    as_of_now: bool,
    level: str,
) -> LoadResult | MultiTableResult | None:
    """Resume a job; return None if it was published already. The arguments are those of `transfer.resume_transfer`.

    Raises:
        MoveError: The job cannot be resumed, or it failed again.
    """
    if isinstance(target, Postgres):
        assert isinstance(source, MariaDB)
        mariadb = source

        def read(conn: Any, goals: Sequence[PostgresTable], restarted: transfer.OnRestart, restart: bool) -> None:
            pieces = _to_postgres(target, conn, goals)
            again = {"restart": restart, "as_of_now": as_of_now}
            from_mariadb.resume(mariadb, ledger, options, pieces, restarted=restarted, completes=False, **again)

        return transfer.resume_into(target, ledger, options, read, restart=restart, level=level)
    ledger.refuse_foreign()
    refuse_ended(ledger)
    plan = Plan.from_json(ledger.plan)
    into, restart = staged_rows.request_of(plan), restart or not ledger.records()
    with resumed_session(target, ledger, plan) as (conn, goals):
        if goals is None:
            return None
        if restart or len(ledger.records()) < len(plan.chunks):
            # The new plan may have fewer chunks.
            restarted = lambda _: drop_all(conn, plan, goals)  # noqa: E731
            if isinstance(source, MariaDB):
                from_mariadb.resume(
                    source,
                    ledger,
                    options,
                    _lines(target, conn, into),
                    restart=restart,
                    as_of_now=as_of_now,
                    restarted=restarted,
                    completes=False,
                )
            else:
                make = _lines_of_postgres(target, conn, into)
                resume(
                    source, ledger, options, make=make, restart=restart, as_of_now=as_of_now, restarted=restarted
                ).__exit__()
        else:
            ledger.begin_attempt("resumed", options.workers, options.memory_bytes)
        return publish_staged(target, conn, ledger, goals, into, options, level)


@contextlib.contextmanager
def resumed_session(target: MariaDB, ledger: Ledger, plan: Plan) -> Iterator[tuple[Any, list[TargetTable] | None]]:
    """Open a session for a resumed job and yield it with the target tables, or with None if the job is published.

    Raises:
        MoveError: The server is a different one, or a target table does not fit.
    """
    into, database = staged_rows.request_of(plan), database_of(target)
    with contextlib.ExitStack() as stack:
        conn = stack.enter_context(open_session(target, plan.id))
        transfer.refuse_other_server(target, conn, plan)
        each = [
            replace(one, create=one.create and not table_exists(conn, database, one))
            for one in requests_of_plan(plan, into)
        ]
        goals = _make_targets(stack, conn, target, plan, each)
        if is_published(conn, goals[0], plan.id):
            mark_complete(ledger)
            drop_all(conn, plan, goals)
            yield conn, None
            return
        yield conn, goals


def _to_postgres(target: Postgres, conn: Any, goals: Sequence[PostgresTable]) -> from_mariadb.ChunkSpecBuilder:
    def pieces(plan: Plan, chunks: Sequence[Chunk]) -> JsonObject:
        copy = transfer.copy_statements(conn, plan, goals)
        return {
            "target": server_spec_of_postgres(target, conn, plan.id),
            "tables": table_specs(plan),
            "chunks": [
                transfer.forwarded_chunk_spec(one, select_sql(plan.tables, one), copy[one.number]) for one in chunks
            ],
        }

    return pieces


def _lines(target: MariaDB, conn: Any, load_request: LoadRequest) -> from_mariadb.ChunkSpecBuilder:
    def pieces(plan: Plan, chunks: Sequence[Chunk]) -> JsonObject:
        goals = recreate_staging(conn, database_of(target), plan, load_request, chunks)
        each = [_line(plan, load_request, goals, chunk, select_sql(plan.tables, chunk)) for chunk in chunks]
        given = {"target": server_spec(target, plan.id), "tables": table_specs(plan), "chunks": each}
        return {**given, "rejects": load_request.rejects is not None}

    return pieces


def _line(plan: Plan, load_request: LoadRequest, goals: Sequence[TargetTable], chunk: Chunk, sql: str) -> MoveChunk:
    """Return the core's specification of one chunk."""
    lines = load_sql(goals[chunk.table], plan.id, chunk.number, placed=load_request.rejects is not None)
    return {
        "number": chunk.number,
        "table": chunk.table,
        "sql": sql,
        "path": None,
        "place": place_of(load_request, plan, chunk.number),
        "into": lines,
    }


def _lines_of_postgres(target: MariaDB, conn: Any, load_request: LoadRequest) -> JobBuilder:
    def make(reading: Reading) -> _core.MoveJob:
        plan, source = reading.plan, reading.snapshot.conn
        goals = recreate_staging(conn, database_of(target), plan, load_request, reading.chunks)
        each = [_line(plan, load_request, goals, one, copy_sql(source, plan.tables, one)) for one in reading.chunks]
        there, rejects = server_spec(target, plan.id), load_request.rejects is not None
        return _core.MoveJob({**reading.spec(each), "target": there, "rejects": rejects})

    return make
