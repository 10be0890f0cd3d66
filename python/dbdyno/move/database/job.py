"""A whole database as one job: the order of its steps, and how it resumes after a kill.

    before the target is touched     refusals, the snapshot, the archive of the schema, the plan in the ledger
    schema, one transaction          what comes before the rows, and the mark of the job
    rows, large objects              chunk by chunk, each with a note at the target
    indexes                          statement by statement, each with a note at the target
    finishing                        sequences, privileges, materialized views, optimizer statistics
    checking, then one transaction   rows read again; the mark is removed, event triggers are created
    comparing                        both schemas

Only rows and large objects need the source's snapshot: everything else is in the archive, which the job keeps. A job
whose snapshot was lost before all rows were copied drops what it created, and starts again in the same folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from dbdyno.base.errors import MoveError
from dbdyno.bench.postgres.binaries import Binaries
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.database import rows, schema
from dbdyno.move.database.copy_phase import fill_target, write_plan
from dbdyno.move.database.finish_phase import conclude, finish
from dbdyno.move.database.inventory import Facts, take_inventory
from dbdyno.move.database.masks import Mask, apply_masks, read_masks
from dbdyno.move.database.programs import find_programs
from dbdyno.move.database.result import MovedDatabase
from dbdyno.move.database.target import (
    LARGE_OBJECTS_DONE,
    MARK,
    end_sessions,
    place_of,
    recorded_entries,
    refuse_filled,
    refuse_target,
    session,
    unfinished_job,
)
from dbdyno.move.database.work import Job, Meter
from dbdyno.move.engines.postgres.snapshot_holder import hold_snapshot
from dbdyno.move.engines.postgres.source import Snapshot, SnapshotLostError, application_name
from dbdyno.move.ledger.folder import Ledger
from dbdyno.move.ledger.next_steps import with_full_command
from dbdyno.move.loading.staged_rows import is_published
from dbdyno.move.reading.resume import HELD, refuse_ended
from dbdyno.move.reading.run import ENDING_SQL, JobOptions


def move_database(
    source: Postgres,
    target: Postgres,
    folder: Callable[[], Any],
    job: str,
    options: JobOptions,
    meter: Meter,
    *,
    hold: int,
    level: str,
    masks: Sequence[Mask] = (),
) -> MovedDatabase:
    """Move a database into an empty one.

    Args:
        source: The server and its database.
        target: The server and its empty database.
        folder: Returns the job's folder; called when all checks have passed.
        job: The job's id.
        options: Number of workers, memory and other limits.
        meter: Returns the progress display for one phase.
        hold: Seconds for which a separate process keeps the snapshot after a crash; 0 starts no such process.
        level: What to check: `counts`, or `target` to read the target's rows again.
        masks: Columns whose values are masked while they are moved.

    Raises:
        MoveError: The move was refused or failed.
    """
    with session(target, job) as conn:
        programs = check_move(source, target, conn, job)
        options.say(f"job {job}; to end it from the database's side: {ENDING_SQL.format(application_name(job))}")
        snapshot, inventory = take_inventory(source, job)
        with snapshot:
            inventory = apply_masks(snapshot, inventory, masks)
            ledger = Ledger.create(folder(), {"status": "running", "snapshots": []})
            work = Job(target, ledger, programs, options, meter, level, {})
            with ledger.locked():
                try:
                    write_plan(work, source, snapshot, inventory, conn, job, "begun")
                except BaseException:
                    ledger.discard()
                    raise
                with with_full_command(ledger):
                    with hold_snapshot(source, snapshot, ledger, hold):
                        fill_target(work, source, snapshot, conn)
                    snapshot.conn.close()
                    return finish(work, conn)


def resume_database(
    source: Callable[[], Postgres],
    target: Postgres,
    ledger: Ledger,
    options: JobOptions,
    meter: Meter,
    *,
    level: str,
    hold: int = 0,
    restart: bool = False,
) -> MovedDatabase:
    """Resume a job, wherever it was interrupted.

    Args:
        source: Opens the source; called only if the target does not have all rows.
        target: The server and the job's database.
        ledger: The job's ledger.
        options: Number of workers, memory and other limits.
        meter: Returns the progress display for one phase.
        level: What to check: `counts`, or `target` to read the target's rows again.
        hold: Seconds for which a separate process keeps a new snapshot after a crash; 0 starts no such process.
        restart: Drop what was created and start again, even if the job could be resumed.

    Raises:
        MoveError: The job cannot go on, or it failed again.
    """
    ledger.refuse_foreign()
    refuse_ended(ledger)
    job, database = str(ledger.plan["id"]), ledger.plan["database"]
    with session(target, job) as conn, ledger.locked(), with_full_command(ledger):
        refuse_target(target, conn, job)
        end_sessions(conn, job)
        facts = Facts(**database["facts"])
        programs = find_programs(max(facts.major, conn.info.server_version // 10000))
        work = Job(target, ledger, programs, options, meter, level, {})
        is_same = place_of(target, conn).stable_id == ledger.plan["into"]["server"]
        if is_same and is_published(conn, ledger):
            options.say("the database was complete before the job ended: both schemas are compared")
            return conclude(work, conn)
        marked = unfinished_job(conn)
        if marked is None or marked[0] != job:
            # The target has nothing of this job (the database may have been recreated): start from the beginning.
            refuse_filled(target, conn)
        if marked is not None and not restart and _is_filled(conn, ledger):
            ledger.begin_attempt("resumed", options.workers, options.memory_bytes)
            return finish(work, conn)
        opened = source()
        _refuse_other(opened, ledger)
        kept = _still_held(opened, ledger) if marked is not None and not restart else None
        if kept is not None:
            options.say(HELD.format(ledger.manifest["snapshots"][-1]["at"]))
            ledger.begin_attempt("resumed", options.workers, options.memory_bytes)
            with kept:
                fill_target(work, opened, kept, conn)
            return finish(work, conn)
        if marked is not None:
            options.say(
                "the snapshot was lost with the process that held it: everything is read again, as of one new instant"
            )
            entries = work.archive()
            schema.drop_created(conn, entries, database["kept"], had_public=facts.has_public)
        refuse_filled(target, conn)
        snapshot, inventory = take_inventory(opened, job)
        with snapshot:
            ledger.forget()
            inventory = apply_masks(snapshot, inventory, read_masks(database.get("masks", ())))
            write_plan(work, opened, snapshot, inventory, conn, job, "restarted")
            with hold_snapshot(opened, snapshot, ledger, hold):
                fill_target(work, opened, snapshot, conn)
        return finish(work, conn)


def check_move(source: Postgres, target: Postgres, conn: psycopg.Connection[Any], job: str) -> Binaries:
    """Check that a move can begin, without writing anything, and return the programs to use.

    Raises:
        MoveError: The target is in use, is on a standby, is not empty or is the source itself; or pg_dump is missing.
    """
    if source.pooled:
        raise MoveError(
            "a pooler is in between: it may give each transaction a different server process, but a snapshot is valid "
            "in only one of them",
            where=source.safe_dsn,
            next_step="connect to the server directly",
        )
    with contextlib.closing(source.connect()) as there:
        if place_of(source, there) == place_of(target, conn):
            raise MoveError(
                "is the source database; expected another one as the target",
                where=target.safe_dsn,
                next_step="name another database",
            )
        version, unfinished = there.info.server_version, unfinished_job(there)
        is_marked = there.execute("select to_regnamespace(%s) is not null", [MARK]).fetchone() == (True,)
    if is_marked and unfinished is None:
        raise MoveError(
            f"has a schema {MARK}, which is the name that a move uses for its own schema",
            where=source.safe_dsn,
            next_step=f"rename it with: alter schema {MARK} rename to ...",
        )
    if unfinished is not None:
        raise MoveError(
            f"is the target of the unfinished job {unfinished[0]}",
            where=source.safe_dsn,
            next_step=f"finish that job first: run `dbdyno move resume {unfinished[1]} --source DSN --target DSN`",
        )
    refuse_target(target, conn, job)
    refuse_filled(target, conn)
    # An embedded server may have programs in a folder of its own.
    own = {} if target.engine is None else {"DBDYNO_PG_BIN": str(target.engine.binaries.bindir)}
    return find_programs(max(version, conn.info.server_version) // 10000, {**os.environ, **own})


def _refuse_other(source: Postgres, ledger: Ledger) -> None:
    with contextlib.closing(source.connect()) as conn:
        if place_of(source, conn).stable_id == ledger.plan["server"]:
            return
    raise MoveError("is not the database of the job", where=source.safe_dsn, next_step=f"name {ledger.plan['source']}")


def _is_filled(conn: psycopg.Connection[Any], ledger: Ledger) -> bool:
    """Return True if the target has all rows and large objects."""
    return rows.reconcile(conn, ledger) == 0 and LARGE_OBJECTS_DONE in recorded_entries(conn)


def _still_held(source: Postgres, ledger: Ledger) -> Snapshot | None:
    """Return the job's snapshot if a process still holds it, else None."""
    name = ledger.manifest["snapshots"][-1].get("held")
    try:
        return take_inventory(source, str(ledger.plan["id"]), str(name))[0] if name else None
    except SnapshotLostError:
        return None
