"""Run of a job from its plan to its last chunk: the core's workers, one record per chunk, recovery after a failure."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from dbdyno import _core
from dbdyno.base.core_types import MoveChunk, MoveEvent, MoveFailure, MoveFinishedChunk, MoveSpec
from dbdyno.base.errors import MoveError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres.columns import Column
from dbdyno.move.engines.postgres.source import (
    Request,
    Snapshot,
    Table,
    application_name,
    copy_sql,
    session_sql,
    take_snapshot,
)
from dbdyno.move.ledger.folder import Ledger
from dbdyno.move.ledger.next_steps import MARIADB, with_full_command
from dbdyno.move.proof.cost import CostSampler, cost_sql
from dbdyno.move.reading.progress import ChunkProgress, Show
from dbdyno.move.reading.splits import TID_RANGES_SINCE, Chunk, Relation, split

LOOK_S = 0.2
WATCH_S = 5.0
ENDING_SQL = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = '{}'"
"""SQL that cancels a job from the database's side."""
END_S = 5.0
"""Time to wait for workers to stop [s]."""
MEMORY_BYTES = 256 << 20
NEXT_STEPS = {
    "server": "check the server's log, then run `dbdyno move resume`",
    "connection": "check that the server and the network to it are up; then run `dbdyno move resume`",
    "file": "free disk space or check the permissions, then run `dbdyno move resume`",
    "stream": "report this error, with the versions of dbdyno and of the server",
}

Say = Callable[[str], None]
"""Function that is called with each line for the user."""


@dataclass(frozen=True)
class JobOptions:
    """Limits and options of a job: workers, memory, rate, piece size, compression, reports, key of the masks."""

    workers: int = 2
    memory_bytes: int = MEMORY_BYTES
    rate_bytes_per_s: int | None = None
    piece_bytes: int | None = None
    zstd_level: int = 1
    progress: Show | None = None
    say: Say = lambda _: None
    mask_key: str = field(default="", repr=False)
    """Key from which masked values are derived; empty for a random one."""


@dataclass(frozen=True)
class Plan:
    """Plan of a job, stored with a seal in the job's manifest."""

    id: str
    source: str
    server: str
    tables: tuple[Table, ...]
    chunks: tuple[Chunk, ...]
    as_text: tuple[str, ...] = ()
    into: Mapping[str, Any] | None = None
    """The target on another server and its options; None if rows go into files."""
    place: str | None = None
    """The folder on a Hadoop file system for the files; None for the job's own folder."""
    files: Mapping[str, Any] | None = None
    """The files that are loaded: `folder`, `heads` (columns) and `each`; None if the source is a server."""
    database: Mapping[str, Any] | None = None
    """What is moved besides rows, if a whole database is: archives, indexes, sequences, facts (`move/database`)."""

    def to_json(self) -> dict[str, object]:
        """Return the plan as a dictionary for the manifest."""
        return asdict(self)

    def original_request(self, names: Sequence[str]) -> Request:
        """Return what the user asked for when the job began; `names` are the quoted names of its tables."""
        first = self.tables[0]
        return Request(
            tables=() if first.query else names,
            where=first.where,
            columns=[one.name for one in first.columns] if len(self.tables) == 1 else (),
            query=first.query,
            as_text=self.as_text,
            partition=first.partition,
        )

    def unfinished(self, done: Container[int]) -> list[Chunk]:
        """Return the chunks whose numbers are not among those that are done."""
        return [chunk for chunk in self.chunks if chunk.number not in done]

    def with_text(self, failed: MoveFailure, convert: Callable[[Column], Column]) -> Plan | None:
        """Return the plan with the failed column read as text; None if no column failed, or if it already is text."""
        if failed["kind"] != "unrepresentable" or "column" not in failed:
            return None
        table = self.tables[failed["table"]]
        column = next((one for one in table.columns if one.name == failed["column"]), None)
        if column is None or column.kind in ("text", "jsonb", "bytea"):
            return None
        columns = tuple(convert(one) if one is column else one for one in table.columns)
        tables = tuple(replace(one, columns=columns) if one is table else one for one in self.tables)
        return replace(self, tables=tables, as_text=(*self.as_text, column.name))

    @classmethod
    def from_json(cls, given: JsonObject) -> Plan:
        """Return the plan from a manifest whose seal is valid."""
        tables = tuple(
            Table(
                **{
                    **table,
                    "columns": tuple(Column(**one) for one in table["columns"]),
                    "relations": tuple(Relation(**one) for one in table["relations"]),
                }
            )
            for table in given["tables"]
        )
        return cls(
            **{
                **given,
                "tables": tables,
                "chunks": tuple(Chunk(**one) for one in given["chunks"]),
                "as_text": tuple(given["as_text"]),
            }
        )


@dataclass(frozen=True)
class Reading:
    """Chunks of a plan that one job of the core reads in a snapshot."""

    source: Postgres
    plan: Plan
    chunks: Sequence[Chunk]
    snapshot: Snapshot
    options: JobOptions
    folder: Path | None = None
    """The folder for files; None if rows are only hashed, are forwarded, or all go into one file as `single` says."""
    single: Mapping[str, Any] | None = None

    def spec(self, chunks: Sequence[MoveChunk]) -> MoveSpec:
        """Return the core's specification for reading these chunks; the caller adds where the rows go."""
        conn = self.snapshot.conn
        return {
            "connection": {**self.source.conninfo(), "application_name": application_name(self.plan.id)},
            "session_sql": session_sql(conn, self.snapshot.id),
            "tables": [{"columns": [column.spec() for column in table.columns]} for table in self.plan.tables],
            "chunks": chunks,
            "workers": self.options.workers,
            "memory_bytes": self.options.memory_bytes,
            "rate_bytes_per_s": self.options.rate_bytes_per_s,
            "cost_sql": cost_sql(conn.info.server_version),
        }


JobBuilder = Callable[[Reading], _core.MoveJob]
"""Function that builds the core's job for some chunks."""


def plan_of(target: Postgres, snapshot: Snapshot, job: str, options: JobOptions) -> Plan:
    """Return a plan with the tables of a snapshot, cut into pieces."""
    several = len(snapshot.tables) > 1
    prefixes = [f"{quote(f'{one.schema}.{one.name}', safe=' ')}/" if several else "" for one in snapshot.tables]
    chunks = split(
        [(prefix, table.relations) for prefix, table in zip(prefixes, snapshot.tables, strict=True)],
        workers=options.workers,
        size=options.piece_bytes,
        tid_ranges=snapshot.conn.info.server_version >= TID_RANGES_SINCE,
    )
    return Plan(job, target.safe_dsn, target.identity(snapshot.conn), tuple(snapshot.tables), tuple(chunks))


def plan_for_transfer(plan: Plan, into: Mapping[str, Any]) -> Plan:
    """Return the plan changed for rows that go to another server: without files and Arrow types."""
    tables = tuple(table_as_sent(one, into) for one in plan.tables)
    return replace(plan, tables=tables, chunks=tuple(replace(one, file="") for one in plan.chunks), into=dict(into))


def table_as_sent(table: Table, into: Mapping[str, Any]) -> Table:
    """Return the table as sent to another server; unchanged for MariaDB, for which rows are decoded as for files."""
    if str(into.get("target")).startswith(MARIADB):
        return table
    return replace(table, columns=tuple(one.as_sent() for one in table.columns))


def new_id() -> str:
    """Return a new random job id of 8 hexadecimal digits, used in session names and messages."""
    # Importing `secrets` would load OpenSSL, and every move would wait for it.
    return os.urandom(4).hex()


def begin(
    target: Postgres,
    request: Request,
    folder: Path,
    options: JobOptions,
    *,
    into: Mapping[str, Any] | None = None,
    job: str | None = None,
    place: str | None = None,
) -> tuple[Ledger, Snapshot]:
    """Take the snapshot of a new job and write its plan to disk; the caller closes the snapshot.

    Args:
        target: The server to read.
        request: The tables or the query to read.
        folder: The job's folder.
        options: Number of workers, memory and other limits.
        into: The target that the rows go to, or None if they go into files.
        job: The job's id, or None for a new one.
        place: The folder on a Hadoop file system for the files, or None.

    Raises:
        MoveError: The tables cannot be read, or the folder cannot be used.
    """
    job = job or new_id()
    snapshot = take_snapshot(target, request, job)
    try:
        plan = replace(plan_of(target, snapshot, job, options), place=place)
        plan = plan if into is None else plan_for_transfer(plan, into)
        manifest = {
            "status": "running",
            "plan": plan.to_json(),
            "snapshots": [{"id": snapshot.id, "at": snapshot.taken_at}],
        }
        ledger = Ledger.create(folder, manifest)
        ledger.begin_attempt("begun", options.workers, options.memory_bytes)
    except BaseException:
        snapshot.__exit__()
        raise
    for line in notes_before(plan, snapshot.conn.info.server_version):
        options.say(line)
    return ledger, snapshot


def notes_before(plan: Plan, version: int) -> list[str]:
    """Return lines that the user should read before the job begins, such as how to cancel it."""
    lines = [f"job {plan.id}; to end it from the database's side: {ENDING_SQL.format(application_name(plan.id))}"]
    for table in plan.tables:
        streams = [one for one in table.relations if one.stream]
        name = f"{table.schema}.{table.name}" if table.schema else "the query"
        if streams:
            kind = table.kind if len(streams) == len(table.relations) else "foreign partition"
            each = "" if len(table.relations) == 1 else f" for each {kind}"
            lines.append(f"{name}: one stream{each}, because {_a(kind)} has no blocks to split by")
        elif version < TID_RANGES_SINCE:
            lines.append(f"{name}: one stream for each relation; PostgreSQL reads ranges of blocks from version 14 on")
    return lines


def _a(noun: str) -> str:
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def run_job(
    target: Postgres, ledger: Ledger, snapshot: Snapshot, options: JobOptions, make: JobBuilder | None = None
) -> None:
    """Read all unfinished chunks; a job that fails can be resumed.

    A column with a value that its Arrow type cannot hold is switched to text, and its table is read again in the same
    snapshot.

    Args:
        target: The server to read.
        ledger: The job's ledger.
        snapshot: The snapshot to read.
        options: Number of workers, memory and other limits.
        make: Builds the core's job if rows do not go into local files; the caller then marks the job complete.

    Raises:
        MoveError: A chunk failed, or the snapshot was lost.
    """
    ledger.refuse_foreign()
    with ledger.locked():
        read_chunks(target, ledger, snapshot, options, make)


def read_chunks(
    target: Postgres, ledger: Ledger, snapshot: Snapshot, options: JobOptions, make: JobBuilder | None = None
) -> None:
    """Read all unfinished chunks of a job whose lock the caller holds; the arguments are those of `run_job`.

    Raises:
        MoveError: A chunk failed, or the snapshot was lost.
    """
    with ledger.phase("reading"), with_full_command(ledger):
        ledger.sweep()
        ledger.make_folders()
        while True:
            plan = Plan.from_json(ledger.plan)
            left = plan.unfinished(ledger.records())
            failed = _run(target, plan, left, ledger, snapshot, options, make or job_of)
            if failed is None:
                break
            if not _widen(ledger, plan, failed, options.say):
                raise _failure(failed, plan)
        if make is None:
            ledger.manifest["status"] = "complete"


def _run(
    target: Postgres,
    plan: Plan,
    chunks: Sequence[Chunk],
    ledger: Ledger,
    snapshot: Snapshot,
    options: JobOptions,
    make: JobBuilder,
) -> MoveFailure | None:
    """Run the workers on the chunks and return the first failure, or None."""
    size = {chunk.number: chunk.bytes for chunk in plan.chunks}
    progress = ChunkProgress(options.progress, size, size.keys() - {chunk.number for chunk in chunks})
    failed: MoveFailure | None = None
    instant = len(ledger.manifest["snapshots"]) - 1
    job = make(Reading(target, plan, chunks, snapshot, options, ledger.folder))
    files = {chunk.number: chunk.file for chunk in chunks}
    watch = CostSampler.for_job(target, snapshot.conn, application_name(plan.id))
    done: list[MoveFinishedChunk] = []

    def record(chunk: MoveFinishedChunk) -> None:
        ledger.record({**chunk, "file": files[chunk["number"]], "snapshot": instant})
        done.append(chunk)

    try:
        for event in events(job, snapshot):
            watch.sample()
            if "done" in event:
                record(event["done"])
                progress.done(event["done"])
            elif "failed" in event and (failed is None or failed["kind"] == "stopped"):
                failed = event["failed"]
            progress.show(job.progress()[0])
    except psycopg.Error as error:
        _end(job, record)
        raise lost_snapshot() from error
    except BaseException:
        _end(job, record)
        raise
    finally:
        ledger.note_cost(watch.sessions(done))
        ledger.save()
    return failed


def lost_snapshot() -> MoveError:
    """Return the error for a snapshot that was lost together with its connection."""
    return MoveError(
        "the connection that holds the snapshot was lost",
        next_step="check that the server is up and that nothing ends idle sessions, then run `dbdyno move resume`",
    )


def _end(job: _core.MoveJob, record: Callable[[MoveFinishedChunk], None]) -> None:
    """Stop the workers and wait up to `END_S` seconds; chunks finished meanwhile are recorded."""
    job.stop()
    until = time.monotonic() + END_S
    while time.monotonic() < until and (event := job.next(LOOK_S)) is not None:
        if "done" in event:
            record(event["done"])


def events(job: _core.MoveJob, snapshot: Snapshot) -> Iterable[MoveEvent]:
    """Yield the events of a job until its end, and empty events while nothing happens.

    Raises:
        MoveError: The snapshot was lost.
    """
    looked = time.monotonic()
    while (event := job.next(LOOK_S)) is not None:
        yield event
        if time.monotonic() - looked > WATCH_S:
            looked = time.monotonic()
            if not snapshot.is_held():
                job.stop()
                raise lost_snapshot()


def job_of(reading: Reading) -> _core.MoveJob:
    """Return the core's job for the chunks."""
    return _core.MoveJob(job_spec(reading))


def job_spec(reading: Reading) -> MoveSpec:
    """Return the specification of the core's job for the chunks; see `job_of`."""
    plan, folder, single = reading.plan, reading.folder, reading.single
    form = "csv" if single is not None and single["form"] == "csv" else "binary"
    pieces: list[MoveChunk] = [
        {
            "number": chunk.number,
            "table": chunk.table,
            "sql": copy_sql(reading.snapshot.conn, plan.tables, chunk, form),
            "path": None if folder is None else str(folder / chunk.file),
            "partition": plan.tables[chunk.table].partition,
        }
        for chunk in reading.chunks
    ]
    return {
        **reading.spec(pieces),
        "tables": table_specs(plan),
        "zstd_level": reading.options.zstd_level,
        "single": single,
    }


def table_specs(plan: Plan) -> list[JsonObject]:
    """Return the plan's tables in the form that the core accepts, with the metadata of their files."""
    return [
        {
            "columns": [column.spec() for column in table.columns],
            "metadata": {"dbdyno.table": f"{table.schema}.{table.name}", "dbdyno.job": plan.id},
        }
        for table in plan.tables
    ]


def _widen(ledger: Ledger, plan: Plan, failed: MoveFailure, say: Say) -> bool:
    """Switch the failed column to text and discard its table's finished chunks; return False if that is impossible."""
    if (changed := plan.with_text(failed, Column.as_text)) is None:
        return False
    say(f"{failed['message']}: the column is moved as text; its table is read again, in the same snapshot")
    ledger.forget(failed["table"])
    ledger.manifest["plan"] = changed.to_json()
    ledger.save()
    return True


def _failure(failed: MoveFailure, plan: Plan) -> MoveError:
    step = NEXT_STEPS.get(failed["kind"], "")
    if failed["kind"] == "unrepresentable":
        step = "omit the column with --columns, or repair its text"
    number = failed.get("chunk")
    where = f"chunk {number}" if number is not None else None
    if len(plan.tables) > 1 and number is not None:
        table = plan.tables[next(one.table for one in plan.chunks if one.number == number)]
        where = f"{table.schema}.{table.name}, {where}"
    return MoveError(failed["message"], where=where, next_step=step or None)
