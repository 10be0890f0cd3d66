"""Jobs that read from MariaDB: snapshots, workers, one record per chunk, and recovery after a failure.

A MariaDB snapshot belongs to the session that took it. For all workers to see the same data, nobody may commit while
their snapshots are taken, so the job holds `FLUSH TABLES WITH READ LOCK` until every worker has begun (for
milliseconds, after running statements have ended). Where the server does not allow this lock, there is one worker, and
the user is informed. Snapshots end with their workers: a chunk that is read later is read from a different snapshot.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dbdyno import _core
from dbdyno.base.core_types import MoveFailure, MoveFinishedChunk
from dbdyno.base.errors import MoveError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.mariadb.address import driver
from dbdyno.bench.mariadb.server import MariaDB
from dbdyno.bench.mariadb.session import row, rows
from dbdyno.move.engines.mariadb import columns as typing
from dbdyno.move.engines.mariadb.cost import sessions_of
from dbdyno.move.engines.mariadb.source import (
    COST_SQL,
    columns_of,
    connect,
    failure,
    requested_tables,
    select_sql,
    session_sql,
)
from dbdyno.move.engines.mariadb.splits import chunks_of
from dbdyno.move.engines.mariadb.sql import quote_name
from dbdyno.move.engines.postgres.source import Request, application_name
from dbdyno.move.ledger.folder import Ledger
from dbdyno.move.ledger.next_steps import with_full_command
from dbdyno.move.reading.progress import ChunkProgress
from dbdyno.move.reading.run import LOOK_S, NEXT_STEPS, JobOptions, Plan, Say, new_id, plan_for_transfer, table_specs
from dbdyno.move.reading.splits import Chunk

BEGIN_S = 60.0
"""Time limit for all workers to begin, in seconds."""
REREAD_OFFSET = 1_000_000
"""Offset that is added to a chunk's number when it is read a second time."""
DENIED = (1227, 1044, 1045)
NO_SNAPSHOT = {"id": "", "at": "before its first snapshot"}

ChunkSpecBuilder = Callable[[Plan, Sequence[Chunk]], JsonObject]
"""Function that builds a `MoveJob` specification without its source: the chunks, and where their rows go."""


@dataclass
class WorkerSessions:
    """Worker sessions that share one snapshot."""

    job: _core.MoveJob
    id: str
    at: str


def plan_of(target: MariaDB, conn: Any, request: Request, job: str, options: JobOptions) -> Plan:
    """Return a plan with the current tables, cut into key ranges.

    Raises:
        MoveError: A table cannot be read or the server reports an error.
    """
    tables = requested_tables(target, conn, request)
    several = len(tables) > 1
    prefixes = [f"{quote(f'{one.schema}.{one.name}', safe=' ')}/" if several else "" for one in tables]
    try:
        chunks = chunks_of(conn, tables, prefixes, options.workers, options.piece_bytes)
        server = target.identity(conn)
    except driver().Error as error:
        raise failure(error, target.safe_dsn) from None
    return Plan(job, target.safe_dsn, server, tables, tuple(chunks), tuple(request.as_text))


def begin(
    target: MariaDB,
    request: Request,
    folder: Path,
    options: JobOptions,
    into: Mapping[str, Any] | None = None,
) -> Ledger:
    """Create a new job's ledger and write its plan to disk; nothing is read yet.

    The arguments are those of `reading.run.begin`.

    Raises:
        MoveError: The tables cannot be planned, or the folder cannot be used.
    """
    job = new_id()
    with contextlib.closing(connect(target, job)) as conn:
        plan = plan_of(target, conn, request, job, options)
    plan = plan if into is None else plan_for_transfer(plan, into)
    ledger = Ledger.create(folder, {"status": "running", "plan": plan.to_json(), "snapshots": [NO_SNAPSHOT]})
    ledger.begin_attempt("begun", options.workers, options.memory_bytes)
    for line in notes_before(plan):
        options.say(line)
    return ledger


def notes_before(plan: Plan) -> list[str]:
    """Return lines for the user to read before the job begins, for example which tables are read as one stream."""
    lines = [f"job {plan.id}; its sessions are in `show processlist`; KILL ends one, and with it the job"]
    for table in plan.tables:
        name = f"{table.schema}.{table.name}" if table.schema else "the query"
        if table.relations[0].stream:
            why = "its key does not begin with an integer" if table.kind == "table" else "it has no key to split by"
            lines.append(f"{name}: one stream: {why}")
        places = [one.name for one in table.columns if one.mariadb_type.split("(")[0].lower() in typing.GEOMETRIES]
        if places:
            lines.append(f"{name}: {', '.join(places)}: as WKB, which has no SRID")
    return lines


@contextlib.contextmanager
def start_workers(
    target: MariaDB, plan: Plan, given: Mapping[str, Any], options: JobOptions
) -> Iterator[WorkerSessions]:
    """Start workers whose snapshots all show the same instant, and stop them on exit.

    Args:
        target: The MariaDB to read.
        plan: The job's plan.
        given: The specification's chunks and their destination.
        options: Number of workers, memory and other limits.

    Raises:
        MoveError: The server reports an error, the workers do not begin in time, or a table was altered meanwhile.
    """
    workers = max(min(options.workers, len(given["chunks"])), 1)
    with contextlib.closing(connect(target, plan.id)) as conn:
        try:
            if workers > 1 and not _lock_tables(conn, target, options.say):
                workers = 1
            at, place = row(conn, "select utc_timestamp(6), coalesce(nullif(@@gtid_binlog_pos, ''), 'no GTID')")
            job = _core.MoveJob(
                {
                    "connection": target.load_connection(application_name(plan.id)),
                    "session_sql": session_sql(plan.tables),
                    "workers": workers,
                    "memory_bytes": options.memory_bytes,
                    "rate_bytes_per_s": options.rate_bytes_per_s,
                    "zstd_level": options.zstd_level,
                    "cost_sql": COST_SQL.strip(),
                    **given,  # type: ignore[typeddict-item]
                }
            )
            _until_begun(job, workers)
            rows(conn, "unlock tables")
        except driver().Error as error:
            raise failure(error, target.safe_dsn) from None
        try:
            _refuse_altered(conn, plan)
            yield WorkerSessions(job, str(place), f"{at}+00")
        finally:
            job.stop()


def _lock_tables(conn: Any, target: MariaDB, say: Say) -> bool:
    try:
        rows(conn, "flush tables with read lock")
    except driver().Error as error:
        if error.args[0] not in DENIED:
            raise failure(error, f"{target.safe_dsn}: FLUSH TABLES WITH READ LOCK") from None
        say("one worker: several workers need FLUSH TABLES WITH READ LOCK for one instant (privilege RELOAD)")
        return False
    return True


def _until_begun(job: _core.MoveJob, workers: int) -> None:
    until = time.monotonic() + BEGIN_S
    while job.begun() < workers:
        if time.monotonic() > until:
            job.stop()
            raise MoveError(
                f"the job's workers did not start within {BEGIN_S:.0f} s", next_step="check the server's log"
            )
        time.sleep(0.002)


def _refuse_altered(conn: Any, plan: Plan) -> None:
    """Raise `MoveError` if a table was altered between the plan and the snapshot."""
    for table in plan.tables:
        if not table.schema:
            continue
        now = {one.name: one.mariadb_type for one in columns_of(conn, table.schema, table.name)}
        if any(now.get(one.name) != one.mariadb_type for one in table.columns):
            raise MoveError(
                "was altered while the job was starting",
                where=f"{table.schema}.{table.name}",
                next_step="run the command again",
            )


def file_chunk_builder(folder: Path, *, again: bool = False) -> ChunkSpecBuilder:
    """Return a builder of chunks that are written to files of a folder.

    Args:
        folder: Where the files are written.
        again: Read each chunk a second time in the same snapshot, for verification, without writing it.
    """

    def pieces(plan: Plan, chunks: Sequence[Chunk]) -> JsonObject:
        each: list[JsonObject] = [
            {
                "number": chunk.number,
                "table": chunk.table,
                "sql": select_sql(plan.tables, chunk),
                "path": str(folder / chunk.file),
                "partition": plan.tables[chunk.table].partition,
            }
            for chunk in chunks
        ]
        second = [{**one, "number": one["number"] + REREAD_OFFSET, "path": None, "partition": None} for one in each]
        return {"tables": table_specs(plan), "chunks": each + second if again else each}

    return pieces


def run_job(
    target: MariaDB, ledger: Ledger, options: JobOptions, pieces: ChunkSpecBuilder, *, completes: bool = True
) -> dict[int, MoveFinishedChunk]:
    """Read all unfinished chunks; a job that fails can be resumed.

    Args:
        target: The MariaDB to read.
        ledger: The job's ledger.
        options: Number of workers, memory and other limits.
        pieces: Builds the chunks and their destination.
        completes: Mark the job complete in the manifest when all chunks are read.

    Returns:
        The records of chunks that were read a second time, by chunk number.

    Raises:
        MoveError: A chunk failed.
    """
    ledger.refuse_foreign()
    with ledger.locked(), ledger.phase("reading"), with_full_command(ledger):
        ledger.sweep()
        ledger.make_folders()
        while True:
            plan = Plan.from_json(ledger.plan)
            left = plan.unfinished(ledger.records())
            failed, second = (None, {}) if not left else _run(target, ledger, plan, left, options, pieces)
            if failed is None:
                break
            if plan.into is not None or not _widen(ledger, plan, failed, options.say):
                raise job_error(failed)
        if completes:
            ledger.manifest["status"] = "complete"
        return second


def _run(
    target: MariaDB,
    ledger: Ledger,
    plan: Plan,
    chunks: Sequence[Chunk],
    options: JobOptions,
    pieces: ChunkSpecBuilder,
) -> tuple[MoveFailure | None, dict[int, MoveFinishedChunk]]:
    files = {chunk.number: chunk.file for chunk in chunks}
    size = {chunk.number: chunk.bytes for chunk in plan.chunks}
    progress = ChunkProgress(options.progress, size, size.keys() - {chunk.number for chunk in chunks})
    failed: MoveFailure | None = None
    done: list[MoveFinishedChunk] = []
    second: dict[int, MoveFinishedChunk] = {}
    with start_workers(target, plan, pieces(plan, chunks), options) as running:
        ledger.manifest["snapshots"][-1] = {"id": running.id, "at": running.at}
        ledger.save()
        try:
            while (event := running.job.next(LOOK_S)) is not None:
                if (one := event.get("done")) is not None:
                    done.append(one)
                    if one["number"] >= REREAD_OFFSET:
                        second[one["number"] - REREAD_OFFSET] = one
                        continue
                    ledger.record(
                        {**one, "file": files[one["number"]], "snapshot": len(ledger.manifest["snapshots"]) - 1}
                    )
                    progress.done(one)
                elif "failed" in event and (failed is None or failed["kind"] == "stopped"):
                    failed = event["failed"]
                progress.show(running.job.progress()[0])
        finally:
            ledger.note_cost(sessions_of(done))
            ledger.save()
    return failed, second


def _widen(ledger: Ledger, plan: Plan, failed: MoveFailure, say: Say) -> bool:
    """Switch the failed column to text and discard all finished chunks; return False if no column can be switched.

    All tables are read again, because the old snapshots no longer exist.
    """
    if (changed := plan.with_text(failed, typing.text_of)) is None:
        return False
    say(f"{failed['message']}: the column is moved as text; everything is read again, as of a new instant")
    ledger.forget()
    ledger.manifest["plan"] = changed.to_json()
    ledger.manifest["snapshots"] = [NO_SNAPSHOT]
    ledger.save()
    return True


def job_error(failed: MoveFailure) -> MoveError:
    """Return an error for a failure that the core reported, with the user's next step."""
    step = NEXT_STEPS.get(failed["kind"], "")
    if failed["kind"] == "unrepresentable":
        step = f"add --text {failed['column']} to move the column as the server prints it"
    where = f"chunk {failed['chunk']}" if failed.get("chunk") is not None else None
    return MoveError(failed["message"], where=where, next_step=step or None)


def resume(
    target: MariaDB,
    ledger: Ledger,
    options: JobOptions,
    pieces: ChunkSpecBuilder,
    *,
    restart: bool,
    as_of_now: bool,
    restarted: Callable[[Plan], None] | None = None,
    completes: bool = True,
) -> dict[int, MoveFinishedChunk]:
    """Resume a job; because its snapshots ended with its workers, the user must choose how.

    The arguments are those of `run_job`, and of `reading.resume.resume`.

    Returns:
        The records of chunks that were read a second time, by chunk number.

    Raises:
        MoveError: Neither choice was made although chunks are finished, the server is a different one, or a chunk
            failed.
    """
    ledger.refuse_foreign()
    plan, done = Plan.from_json(ledger.plan), len(ledger.records())
    if done and not restart and not as_of_now:
        raise MoveError(
            f"the snapshots of {ledger.manifest['snapshots'][-1]['at']} are gone, because the job's workers ended;"
            f" {done} of {len(plan.chunks)} chunks are finished",
            where=str(ledger.folder),
            next_step="add --restart to read all rows again in one snapshot, or --as-of-now to read only the "
            "missing chunks as they are now (exact only if the table has not changed since)",
        )
    with contextlib.closing(connect(target, plan.id)) as conn:
        if target.identity(conn) != plan.server:
            raise MoveError(
                "is not the server of the job",
                where=target.safe_dsn,
                next_step=f"use the job's own server: {plan.source}",
            )
        if restart or not done:
            names = [quote_name(one.schema, one.name) for one in plan.tables]
            fresh = plan_of(target, conn, plan.original_request(names), plan.id, options)
            fresh = fresh if plan.into is None else plan_for_transfer(fresh, plan.into)
            with ledger.locked():
                ledger.sweep()
                ledger.forget()
                if restarted is not None:
                    restarted(fresh)
                ledger.manifest.update(plan=fresh.to_json(), snapshots=[NO_SNAPSHOT])
                ledger.begin_attempt("restarted", options.workers, options.memory_bytes)
        else:
            _refuse_altered(conn, plan)
            ledger.manifest["snapshots"].append(NO_SNAPSHOT)
            ledger.begin_attempt("resumed as of now", options.workers, options.memory_bytes)
    return run_job(target, ledger, options, pieces, completes=completes)
