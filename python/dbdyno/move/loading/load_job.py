"""Load of files into a table as a resumable job: a ledger records what is staged.

Each piece of a file goes into its own staging table beside the target, as for a move from server to server: a piece
that was interrupted is emptied and loaded again, and no finished piece is read twice. Files are identified by size and
modification time; if a file has changed since the job began, its staged rows cannot be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from dbdyno import _core
from dbdyno.base.core_types import MoveFileCount
from dbdyno.base.errors import MoveError
from dbdyno.base.files import os_errors_as
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres import partitions
from dbdyno.move.engines.postgres.publish import publish
from dbdyno.move.engines.postgres.source import Table, application_name
from dbdyno.move.engines.postgres.staging import PREFIX, REPAIR, copy_statement, server_spec
from dbdyno.move.engines.postgres.target import TargetTable, table_creator
from dbdyno.move.ledger.folder import Ledger
from dbdyno.move.ledger.next_steps import resumable_errors, with_full_command
from dbdyno.move.loading.files import add_rejects, check_against_records, describe_files, files_of, rejects_of
from dbdyno.move.loading.methods import refuse_misread
from dbdyno.move.loading.pieces import CSV, Piece, piece_at, pieces_of, records_by_file
from dbdyno.move.loading.rejects import Rejects
from dbdyno.move.loading.request import PARTITIONS, LoadRequest, LoadResult
from dbdyno.move.loading.staged_rows import (
    PUBLISHING,
    note_transaction,
    publish_by_partitions,
    refuse_emptied,
    request_of,
    stage_names,
    target_description,
    target_tables,
)
from dbdyno.move.loading.transfer import empty_unfinished, make_stages, resumed_session, target_session
from dbdyno.move.loading.workers import Record, run_workers
from dbdyno.move.nouns import with_noun
from dbdyno.move.reading.run import ENDING_SQL, JobOptions, Plan, new_id
from dbdyno.move.reading.splits import Chunk

START_MESSAGE = "job {}: staging {}, each in an unlogged table beside the target; to end it in the database: {}"


def load(
    target: Postgres, source: Path, load_request: LoadRequest, folder: Path, options: JobOptions, level: str
) -> LoadResult:
    """Start a new job and run it from the files to the commit; if it fails, the target table is unchanged.

    Raises:
        MoveError: The load was refused or failed.
    """
    plan = plan_of(source, load_request, target.safe_dsn, new_id(), options.workers)
    rejects_of(load_request, [])
    with target_session(target, load_request) as conn:
        plan = replace(plan, into={**(plan.into or {}), "server": target.identity(conn)})
        (goal,) = target_tables(conn, plan, load_request)
        if load_request.mode == PARTITIONS:
            # Checked before all files are read, because the partitions may turn out to be not replaceable.
            partitions.wanted_tree(conn, goal.oid, load_request, [one.name for one in goal.columns])
        ledger = new_ledger(plan, folder, options)
        try:
            make_stages(conn, plan, [goal], placed=load_request.rejects is not None)
        except BaseException:
            ledger.discard()
            raise
        ending = ENDING_SQL.format(application_name(plan.id))
        options.say(START_MESSAGE.format(plan.id, with_noun(len(plan.chunks), "piece"), ending))
        return _FileJob(target, conn, ledger, plan, goal, options, level).run()


def new_ledger(plan: Plan, folder: Path, options: JobOptions) -> Ledger:
    """Create a new ledger for the plan.

    Raises:
        MoveError: The folder cannot be used.
    """
    now = {"id": "", "at": datetime.now(UTC).isoformat(sep=" ", timespec="seconds")}
    ledger = Ledger.create(folder, {"status": "running", "plan": plan.to_json(), "snapshots": [now]})
    ledger.begin_attempt("begun", options.workers, options.memory_bytes)
    return ledger


def resume_load(
    target: Postgres, ledger: Ledger, options: JobOptions, level: str, *, restart: bool
) -> LoadResult | None:
    """Resume a job; return None if it turns out to have been published already.

    Raises:
        MoveError: The job cannot be resumed, or it failed again.
    """
    with resumed_session(target, ledger) as (conn, begun_plan, into):
        if conn is None:
            return None
        plan = resumed_plan(begun_plan, into, options, restart=restart)
        (goal,) = target_tables(conn, plan, into)
        with ledger.locked():
            if restart or not ledger.records():
                ledger.forget()
                ledger.manifest["plan"] = plan.to_json()
                make_stages(conn, plan, [goal], placed=into.rejects is not None)
            else:
                empty_unfinished(conn, plan, [goal], ledger)
            ledger.begin_attempt("restarted" if restart else "resumed", options.workers, options.memory_bytes)
        return _FileJob(target, conn, ledger, plan, goal, options, level).run()


def resumed_plan(plan: Plan, load_request: LoadRequest, options: JobOptions, *, restart: bool) -> Plan:
    """Return the plan of a resumed job: unchanged, or with `restart` recreated from the files as they are now.

    Raises:
        MoveError: A file has changed and `restart` is False, or the files cannot be read.
    """
    if not restart:
        refuse_changed(plan)
        return plan
    fresh = plan_of(Path(files_in(plan)["folder"]), load_request, "", plan.id, options.workers)
    return replace(fresh, into=plan.into)


def plan_of(source: Path, load_request: LoadRequest, target: str, job: str, workers: int) -> Plan:
    """Return a plan with one chunk per piece of a file.

    Raises:
        MoveError: The files cannot be read, or are CSV.
    """
    files, records = files_of(source)
    if files[0].suffix == CSV:
        raise MoveError(
            "a CSV file is loaded as a whole: a job cannot continue in the middle of the file",
            where=str(source),
            next_step="leave --job out; the load is one transaction, which you can run again if it fails",
        )
    heads = describe_files(files)[0][0]
    each = [_look(path) for path in files]
    chunks = [
        Chunk(number, 0, one.file, "", one.bytes, *(one.groups or ()))
        for number, one in enumerate(pieces_of(files, workers))
    ]
    table = Table("", source.name or str(source), "files", (), ())
    return Plan(
        id=job,
        source=str(source.absolute()),
        server="files",
        tables=(table,),
        chunks=tuple(chunks),
        into=target_description(load_request, target),
        files={"folder": str(source.absolute()), "heads": heads, "each": each, "of_a_job": records is not None},
    )


def _look(path: Path) -> JsonObject:
    """Return path, size and modification time of a file; raise `MoveError` if it cannot be read."""
    with os_errors_as(MoveError, "cannot be read", path, "restore the file"):
        found = path.stat()
    return {"path": str(path.absolute()), "bytes": found.st_size, "modified_ns": found.st_mtime_ns}


def files_in(plan: Plan) -> JsonObject:
    """Return what the plan says about the files, or an empty dictionary if the job loads no files."""
    return dict(plan.files or {})


def refuse_changed(plan: Plan) -> None:
    """Check that all files are those with which the job began.

    Raises:
        MoveError: A file has changed.
    """
    for one in files_in(plan)["each"]:
        if _look(Path(one["path"])) != one:
            raise MoveError(
                "has changed since the job began: its staged rows may differ from what it contains now",
                where=one["path"],
                next_step="add --restart to load all files again",
            )


@dataclass(frozen=True)
class _FileJob:
    """A begun or resumed job, with a session at its target and the level of verification."""

    target: Postgres
    conn: psycopg.Connection[Any]
    ledger: Ledger
    plan: Plan
    goal: TargetTable
    options: JobOptions
    level: str

    def run(self) -> LoadResult:
        """Load the pieces that are not staged yet, then publish all; after a `MoveError` the job can be resumed."""
        ledger, into = self.ledger, request_of(self.plan)
        with ledger.locked():
            stage_unfinished(ledger, self.plan, self._stage)
            with ledger.phase("publishing"), resumable_errors(ledger, into.table):
                loaded = self._publish(into)
                ledger.manifest.update(status="complete", proved=loaded.sentences())
        return loaded

    def _stage(self, left: Mapping[int, Piece], record: Record) -> None:
        children, placed = stage_names(self.plan, self.goal)[1], request_of(self.plan).rejects is not None
        copies = {
            number: copy_statement(children[number], self.goal.columns, csv=False, placed=placed).as_string(self.conn)
            for number in left
        }
        server = server_spec(self.target, self.conn, self.plan.id)
        run_workers(server, left, copies, self.options, record, placed=placed, repair=REPAIR)

    def _publish(self, into: LoadRequest) -> LoadResult:
        """Publish the rows in one transaction, noting its id before; raise `MoveError` if a check fails."""
        conn, ledger, plan = self.conn, self.ledger, self.plan
        parent = stage_names(plan, self.goal)[0]
        done, of_a_job = staged_files(ledger, plan)
        rows = sum(one["rows"] for one in done)
        refuse_emptied(conn, parent, rows - sum(len(one["refused"]) for one in done), ledger)
        again = self.level in ("source", "target")
        if again:
            refuse_misread(self.target, conn, parent, self.goal, done, self.options)
        self.options.say(PUBLISHING.format(with_noun(rows, "row")))
        rejects = rejects_of(into, paths_of(plan))
        if rejects is not None:
            for one in done:
                add_rejects(rejects, one["number"], one["refused"])
        try:
            with conn.transaction():
                loaded = self._publish_rows(into, parent, rows, rejects)
                conn.execute(sql.SQL("drop table if exists {} cascade").format(parent))
                note_transaction(conn, ledger)
        except BaseException:
            if rejects is not None:
                rejects.remove_file(conn)
            raise
        return replace(loaded, files=len(done), records=of_a_job, read_again=again)

    def _publish_rows(self, into: LoadRequest, stage: sql.Identifier, rows: int, rejects: Rejects | None) -> LoadResult:
        conn, goal, compare = self.conn, self.goal, self.level == "target"
        if rejects is not None:
            # Bad rows are found by bisecting the blocks of a single table.
            apart = sql.Identifier(goal.schema, f"{PREFIX}{self.plan.id}_placed")
            conn.execute(sql.SQL("create unlogged table {} as table {}").format(apart, stage))
            stage = apart
        staged = goal.staged_rows(stage, rows)
        if into.mode == PARTITIONS:
            return publish_by_partitions(conn, goal, staged, into, rejects, compare=compare)
        first = table_creator(into, files_in(self.plan)["heads"])
        if compare and into.mode == "insert":
            # Set for the whole transaction, of which `publish` is a part.
            conn.execute("set transaction isolation level repeatable read")
        return publish(conn, staged, into, rejects, compare=compare, first=first)


def stage_unfinished(ledger: Ledger, plan: Plan, stage: Callable[[Mapping[int, Piece], Record], None]) -> None:
    """Let `stage` load the pieces that are not staged yet and record each of them.

    Raises:
        MoveError: A piece could not be loaded, or a file has changed since the job began.
    """
    with ledger.phase("loading"), with_full_command(ledger):
        paths = paths_of(plan)
        left = {one.number: _piece_of(one, paths) for one in plan.unfinished(ledger.records())}
        if left:
            stage(left, lambda chunk: ledger.record({**chunk, "file": "", "snapshot": 0}))
        refuse_changed(plan)


def paths_of(plan: Plan) -> list[Path]:
    """Return the paths of the files that a job loads."""
    return [Path(one["path"]) for one in files_in(plan)["each"]]


def staged_files(ledger: Ledger, plan: Plan) -> tuple[list[MoveFileCount], bool]:
    """Return a record per staged file, and True if these agree with records of the job that wrote the files.

    Raises:
        MoveError: They differ from those records.
    """
    paths, known = paths_of(plan), files_of(Path(files_in(plan)["folder"]))[1] if files_in(plan)["of_a_job"] else None
    files = {chunk.number: chunk.relation for chunk in plan.chunks}
    done = records_by_file(len(paths), ((files[number], one) for number, one in sorted(ledger.records().items())))
    check_against_records(paths, done, known)
    return done, known is not None


def _piece_of(chunk: Chunk, paths: Sequence[Path]) -> Piece:
    """Return the piece of a file that a chunk represents."""
    path = paths[chunk.relation]
    if chunk.start is None or chunk.before is None:
        return Piece(chunk.relation, path, chunk.bytes)
    return piece_at(chunk.relation, path, _core.move_groups(path), chunk.start, chunk.before)
