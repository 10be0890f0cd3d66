"""Move from server to server without files: the bytes of COPY are forwarded as they arrive.

Each chunk goes into its own staging table beside the target (all inherit from one parent, so they can be read as one
table). A chunk that was interrupted is emptied and copied again, so no row is duplicated. When all chunks are staged,
one transaction publishes them and drops the staging tables; its id is written to the ledger before the commit, so that
a resumed job can ask the server whether it committed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import psycopg
from psycopg import sql

from dbdyno import _core
from dbdyno.base.core_types import MoveChunk
from dbdyno.base.errors import MoveError
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres import partitions
from dbdyno.move.engines.postgres.snapshot_holder import hold_snapshot
from dbdyno.move.engines.postgres.source import Request, copy_sql, failure
from dbdyno.move.engines.postgres.staging import FILE, ROW, server_spec
from dbdyno.move.engines.postgres.target import TargetTable
from dbdyno.move.ledger.folder import Ledger
from dbdyno.move.loading.files import rejects_of
from dbdyno.move.loading.load import open_session
from dbdyno.move.loading.request import PARTITIONS, LoadRequest, LoadResult, MultiTableResult
from dbdyno.move.loading.staged_rows import (
    is_published,
    publish_staged,
    request_of,
    stage_names,
    target_description,
    target_tables,
)
from dbdyno.move.reading.resume import refuse_ended, resume
from dbdyno.move.reading.run import JobBuilder, JobOptions, Plan, Reading, begin, new_id, run_job
from dbdyno.move.reading.splits import Chunk

OnRestart = Callable[[Plan], None]
"""Function that is called with the new plan if all chunks are read again."""
ReadChunks = Callable[[psycopg.Connection[Any], Sequence[TargetTable], OnRestart, bool], None]
"""Function that reads the missing chunks into a target's staging tables, or all chunks if the last argument is True."""


class Target(Protocol):
    """Interface of a server whose identity does not depend on its address."""

    @property
    def safe_dsn(self) -> str:
        """Return the address without a password."""

    def identity(self, connection: Any, /) -> str:
        """Return an identifier of the server that does not depend on the address used to reach it."""


def move(
    source: Postgres,
    request: Request,
    target: Postgres,
    load_request: LoadRequest,
    folder: Path,
    options: JobOptions,
    *,
    hold: int = 0,
    level: str = "counts",
) -> LoadResult | MultiTableResult:
    """Start a new job and run it from its snapshot to the commit; if it fails, the target is unchanged.

    Args:
        source: The server to read.
        request: The tables or the query to read.
        target: The server to write.
        load_request: The target table, the mode and the key.
        folder: The job's folder.
        options: Number of workers, memory and other limits.
        hold: Seconds for which a separate process keeps the snapshot after a crash; 0 starts no such process.
        level: The level of verification.

    Raises:
        MoveError: The move was refused or failed.
    """
    job = new_id()
    rejects_of(load_request, [])
    asked = target_description(load_request, target.safe_dsn)
    with target_session(target, load_request) as conn:
        asked["server"] = target.identity(conn)
        ledger, snapshot = begin(source, request, folder, options, into=asked, job=job)
        plan = Plan.from_json(ledger.plan)
        try:
            goals = target_tables(conn, plan, load_request)
            if load_request.mode == PARTITIONS:
                # Checked before all rows are read, because the partitions may turn out to be not replaceable.
                partitions.wanted_tree(conn, goals[0].oid, load_request, [one.name for one in goals[0].columns])
            make_stages(conn, plan, goals)
        except BaseException:
            snapshot.__exit__()
            ledger.discard()
            raise
        with snapshot, hold_snapshot(source, snapshot, ledger, hold):
            run_job(source, ledger, snapshot, options, _maker(target, conn, goals))
        return publish_staged(target, conn, ledger, load_request, options, level)


def resume_transfer(
    source: Postgres,
    target: Postgres,
    ledger: Ledger,
    options: JobOptions,
    *,
    restart: bool,
    as_of_now: bool,
    level: str = "counts",
) -> LoadResult | MultiTableResult | None:
    """Resume a job; return None if it turns out to have been published already.

    Args:
        source: The server to read.
        target: The server to write.
        ledger: The job's ledger.
        options: Number of workers, memory and other limits.
        restart: Read all chunks again from a new snapshot.
        as_of_now: Read only the missing chunks, from a new snapshot.
        level: The level of verification.

    Raises:
        MoveError: The job cannot be resumed, or it failed again.
    """

    def read(conn: psycopg.Connection[Any], goals: Sequence[TargetTable], restarted: OnRestart, restart: bool) -> None:
        make = _maker(target, conn, goals)
        resume(source, ledger, options, restart=restart, as_of_now=as_of_now, make=make, restarted=restarted).__exit__()

    return resume_into(target, ledger, options, read, restart=restart, level=level)


def resume_into(
    target: Postgres, ledger: Ledger, options: JobOptions, read: ReadChunks, *, restart: bool, level: str
) -> LoadResult | MultiTableResult | None:
    """Resume a job into PostgreSQL; return None if it turns out to have been published already.

    Args:
        target: The server to write.
        ledger: The job's ledger.
        options: Number of workers, memory and other limits.
        read: Reads the chunks that are missing.
        restart: Read all chunks again from a new snapshot.
        level: The level of verification.

    Raises:
        MoveError: The job cannot be resumed, or it failed again.
    """
    with resumed_session(target, ledger) as (conn, plan, into):
        if conn is None:
            return None
        goals = target_tables(conn, plan, into)
        restart = restart or not ledger.records()
        if not restart:
            empty_unfinished(conn, plan, goals, ledger)
        if restart or len(ledger.records()) < len(plan.chunks):
            read(conn, goals, lambda fresh: make_stages(conn, fresh, goals), restart)
        else:
            ledger.begin_attempt("resumed", options.workers, options.memory_bytes)
        return publish_staged(target, conn, ledger, into, options, level)


@contextlib.contextmanager
def resumed_session(
    target: Postgres, ledger: Ledger
) -> Iterator[tuple[psycopg.Connection[Any] | None, Plan, LoadRequest]]:
    """Yield a session of a job's target (None if the job was published already), the job's plan and its request.

    Raises:
        MoveError: The job cannot be resumed, or began with another target.
    """
    ledger.refuse_foreign()
    refuse_ended(ledger)
    plan = Plan.from_json(ledger.plan)
    into = request_of(plan)
    with target_session(target, into) as conn:
        refuse_other_server(target, conn, plan)
        published = is_published(conn, ledger)
        if published:
            ledger.manifest["status"] = "complete"
            ledger.save()
        yield (None if published else conn), plan, into


def refuse_other_server(target: Target, conn: Any, plan: Plan) -> None:
    """Check that the job began with this target.

    Raises:
        MoveError: The target is another server.
    """
    asked = plan.into or {}
    if target.identity(conn) != asked["server"]:
        raise MoveError("is not the server of the job", where=target.safe_dsn, next_step=f"name {asked['target']}")


@contextlib.contextmanager
def target_session(target: Postgres, load_request: LoadRequest) -> Iterator[psycopg.Connection[Any]]:
    """Connect to the target; a database error becomes a `MoveError` that names the table."""
    try:
        with open_session(target, load_request) as conn:
            yield conn
    except psycopg.Error as error:
        raise failure(error, load_request.table) from None


def make_stages(
    conn: psycopg.Connection[Any], plan: Plan, goals: Sequence[TargetTable], *, placed: bool = False
) -> None:
    """Create the staging tables, dropping existing ones; `placed` adds columns for each row's position."""
    with conn.transaction():
        for place, goal in enumerate(goals):
            parent, children = stage_names(plan, goal, place)
            parts = [sql.SQL("{} {}").format(sql.Identifier(one.name), sql.SQL(one.staged)) for one in goal.columns]
            if placed:
                parts += [
                    sql.SQL("{} integer").format(sql.Identifier(FILE)),
                    sql.SQL("{} bigint").format(sql.Identifier(ROW)),
                ]
            conn.execute(sql.SQL("drop table if exists {} cascade").format(parent))
            conn.execute(sql.SQL("create unlogged table {} ({})").format(parent, sql.SQL(", ").join(parts)))
            for child in children.values():
                conn.execute(sql.SQL("create unlogged table {} () inherits ({})").format(child, parent))


def empty_unfinished(conn: psycopg.Connection[Any], plan: Plan, goals: Sequence[TargetTable], ledger: Ledger) -> None:
    """Empty the staging tables of unfinished chunks.

    Raises:
        MoveError: The staging tables no longer exist.
    """
    done = ledger.records()
    for place, goal in enumerate(goals):
        _empty_unfinished(conn, done, *stage_names(plan, goal, place))


def _empty_unfinished(
    conn: psycopg.Connection[Any],
    done: Mapping[int, object],
    parent: sql.Identifier,
    children: Mapping[int, sql.Identifier],
) -> None:
    row = conn.execute("select to_regclass(%s) is not null", [parent.as_string(conn)]).fetchone()
    if not row or not row[0]:
        raise MoveError(
            "the staging tables are missing",
            where=parent.as_string(conn),
            next_step="add --restart to read and copy all rows again",
        )
    for number, child in children.items():
        if number not in done:
            conn.execute(sql.SQL("truncate {}").format(child))


def copy_statements(conn: psycopg.Connection[Any], plan: Plan, goals: Sequence[TargetTable]) -> dict[int, str]:
    """Return the COPY statement that receives each chunk's rows, by chunk number."""
    made = {}
    for place, goal in enumerate(goals):
        names = sql.SQL(", ").join(sql.Identifier(one.name) for one in goal.columns)
        for number, child in stage_names(plan, goal, place)[1].items():
            made[number] = sql.SQL("copy {} ({}) from stdin (format binary)").format(child, names).as_string(conn)
    return made


def forwarded_chunk_spec(chunk: Chunk, text: str, into: str) -> MoveChunk:
    """Return the specification, for the Rust core, of a chunk whose bytes are forwarded as they arrive."""
    return {"number": chunk.number, "table": chunk.table, "sql": text, "path": None, "raw": True, "into": into}


def _maker(target: Postgres, conn: psycopg.Connection[Any], goals: Sequence[TargetTable]) -> JobBuilder:
    def make(reading: Reading) -> _core.MoveJob:
        plan, source = reading.plan, reading.snapshot.conn
        copy = copy_statements(conn, plan, goals)
        each = [
            forwarded_chunk_spec(one, copy_sql(source, plan.tables, one), copy[one.number]) for one in reading.chunks
        ]
        return _core.MoveJob({**reading.spec(each), "target": server_spec(target, conn, plan.id)})

    return make
