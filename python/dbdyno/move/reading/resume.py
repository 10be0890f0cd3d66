"""Resumption of a job: as of its original snapshot if that still exists, else as the user chooses.

A snapshot lives as long as the connection that took it. Without it, the finished chunks show the table at one instant
and new ones at another: a row that moved in between is missing or duplicated. Therefore this is done only on request:
`restart` reads all chunks again, `as_of_now` reads only the missing ones and says what that means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import psycopg

from dbdyno.base.errors import MoveError
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres.source import Snapshot, SnapshotLostError, Table, take_snapshot
from dbdyno.move.ledger.folder import Ledger
from dbdyno.move.reading.run import (
    JobBuilder,
    JobOptions,
    Plan,
    plan_for_transfer,
    plan_of,
    run_job,
    table_as_sent,
)

HELD = "the snapshot of {} is still held: the job continues as of that instant"


def resume(
    target: Postgres,
    ledger: Ledger,
    options: JobOptions,
    *,
    restart: bool,
    as_of_now: bool,
    make: JobBuilder | None = None,
    restarted: Callable[[Plan], None] | None = None,
) -> Snapshot:
    """Finish a job, and return the snapshot from which the remaining chunks were read; the caller must close it.

    Args:
        target: The server to read.
        ledger: The job's ledger.
        options: Number of workers, memory and other limits.
        restart: Read all chunks again from a new snapshot.
        as_of_now: Read only the missing chunks, from a new snapshot.
        make: Builds the core's job if rows do not go into local files.
        restarted: Called with the new plan before a restart, if rows go to another server.

    Raises:
        MoveError: The snapshot is gone and neither choice was made, the server is a different one, or a chunk failed.
    """
    ledger.refuse_foreign()
    plan = Plan.from_json(ledger.plan)
    refuse_ended(ledger)
    done = len(ledger.records())
    snapshot = _held_snapshot(target, ledger, plan) if done and not restart and not as_of_now else None
    if snapshot is not None:
        options.say(HELD.format(ledger.manifest["snapshots"][-1]["at"]))
        _finish(target, ledger, plan, snapshot, options, make, restarted, restart=False)
        return snapshot
    if done and not restart and not as_of_now:
        at = ledger.manifest["snapshots"][-1]["at"]
        raise MoveError(
            f"the snapshot of {at} ended with the process that held it; {done} of {len(plan.chunks)} chunks are"
            " finished",
            where=str(ledger.folder),
            next_step="add --restart to read all rows again in one snapshot, or --as-of-now to read only the "
            "missing chunks as they are now (exact only if the table has not changed since)",
        )
    snapshot = take_snapshot(target, plan.original_request(snapshot_names(plan)), plan.id)
    anew = restart or not done
    _finish(target, ledger, plan, snapshot, options, make, restarted, restart=anew, as_of_now=as_of_now)
    return snapshot


def refuse_ended(ledger: Ledger) -> None:
    """Check that the job still has something to do.

    Raises:
        MoveError: The job is complete or aborted.
    """
    if ledger.manifest["status"] != "running":
        raise MoveError(
            f"the job is {ledger.manifest['status']}",
            where=str(ledger.folder),
            next_step=f"see the job with `dbdyno move status {ledger.folder}`",
        )


def _held_snapshot(target: Postgres, ledger: Ledger, plan: Plan) -> Snapshot | None:
    """Return the job's original snapshot if a process still holds it, else None."""
    name = ledger.manifest["snapshots"][-1].get("held")
    if not name:
        return None
    try:
        return take_snapshot(target, plan.original_request(snapshot_names(plan)), plan.id, str(name))
    except SnapshotLostError:
        return None


def _finish(
    target: Postgres,
    ledger: Ledger,
    plan: Plan,
    snapshot: Snapshot,
    options: JobOptions,
    make: JobBuilder | None,
    restarted: Callable[[Plan], None] | None,
    *,
    restart: bool,
    as_of_now: bool = False,
) -> None:
    try:
        if target.identity(snapshot.conn) != plan.server:
            raise MoveError(
                "is not the server of the job",
                where=target.safe_dsn,
                next_step=f"use the job's own server: {plan.source}",
            )
        taken = {"id": snapshot.id, "at": snapshot.taken_at}
        if restart:
            with ledger.locked():
                ledger.sweep()
                ledger.forget()
                fresh = replace(plan_of(target, snapshot, plan.id, options), place=plan.place)
                fresh = fresh if plan.into is None else plan_for_transfer(fresh, plan.into)
                if restarted is not None:
                    restarted(fresh)
                ledger.manifest.update(plan=fresh.to_json(), snapshots=[taken])
                ledger.begin_attempt("restarted", options.workers, options.memory_bytes)
        elif as_of_now:
            _refuse_changed(plan, snapshot)
            ledger.manifest["snapshots"].append(taken)
            ledger.begin_attempt("resumed as of now", options.workers, options.memory_bytes)
        else:
            ledger.begin_attempt("resumed", options.workers, options.memory_bytes)
        run_job(target, ledger, snapshot, options, make)
    except psycopg.Error as error:
        snapshot.__exit__()
        raise MoveError(str(error).strip(), where=target.safe_dsn, next_step="run `dbdyno move resume` again") from None
    except BaseException:
        snapshot.__exit__()
        raise


def snapshot_names(plan: Plan) -> list[str]:
    """Return the quoted names of the job's tables."""
    from psycopg import sql

    return [sql.Identifier(one.schema, one.name).as_string(None) for one in plan.tables if one.schema]


def _refuse_changed(plan: Plan, snapshot: Snapshot) -> None:
    """Raise `MoveError` if a table was rewritten or altered, so that its ranges of blocks mean something else now."""
    for before, table in zip(plan.tables, snapshot.tables, strict=True):
        now = table if plan.into is None else table_as_sent(table, plan.into)
        if _shape(before) != _shape(now):
            raise MoveError(
                "was rewritten or altered after the job started: its finished chunks do not match the present table",
                where=f"{before.schema}.{before.name}",
                next_step="add --restart to read all rows again",
            )


def _shape(table: Table) -> tuple[object, ...]:
    relations = tuple(replace(one, blocks=0, bytes=0) for one in table.relations)
    return relations, table.columns
