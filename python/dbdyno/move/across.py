"""From server to server without files: COPY's bytes are handed on as they come.

Each chunk goes into a staging table of its own beside the target (they inherit from one, so that all are read as one):
what a kill leaves half done is emptied and copied again, nothing is doubled. When all chunks are there, one transaction
publishes them and drops the staging tables; its number is in the ledger before it commits, so that whoever resumes
can ask the server what became of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from dbdyno import _core
from dbdyno.bench.postgres.server import Postgres
from dbdyno.errors import MoveError
from dbdyno.move import partitions
from dbdyno.move.arrived import asked_for, asked_of, heads_of, is_published, publish_staged, stage_names
from dbdyno.move.cost import cost_sql
from dbdyno.move.filed import rejects_of
from dbdyno.move.goal import Goal, matched
from dbdyno.move.hold import held
from dbdyno.move.into import PARTITIONS, Into, Loaded
from dbdyno.move.inward import reached
from dbdyno.move.ledger import Ledger
from dbdyno.move.resume import refuse_ended, resume
from dbdyno.move.run import How, Make, Plan, Say, begin, new_id, work
from dbdyno.move.source import Snapshot, Wish, application, copy_sql, failure, session_settings, session_sql
from dbdyno.move.splits import Chunk


def move(
    source: Postgres,
    wish: Wish,
    target: Postgres,
    into: Into,
    folder: Path,
    how: How,
    say: Say,
    *,
    hold: int = 0,
    level: str = "counts",
) -> Loaded:
    """A new job, from its snapshot to the commit. Raises `MoveError`; the target has not changed then."""
    job = new_id()
    rejects_of(into, [])
    asked = asked_for(into, target.safe_dsn)
    with reached_target(target, into) as conn:
        asked["server"] = target.identity(conn)
        ledger, snapshot = begin(source, wish, folder, how, say, into=asked, job=job)
        plan = Plan.from_json(ledger.plan)
        try:
            if len(plan.tables) != 1:
                raise MoveError(
                    f"{len(plan.tables)} tables are meant",
                    where="--tables",
                    next_step="move them to the server one by one",
                )
            goal = matched(conn, into, heads_of(conn, plan))
            if into.mode == PARTITIONS:
                # Before all rows are read: it may turn out that it cannot be.
                partitions.wanted(conn, goal.oid, into, [one.name for one in goal.columns])
            make_stages(conn, plan, goal)
        except BaseException:
            snapshot.__exit__()
            ledger.discard()
            raise
        with snapshot, held(source, snapshot, ledger, hold):
            work(source, ledger, snapshot, how, say, _maker(target, conn, goal))
        return publish_staged(target, conn, ledger, into, how, level)


def go_on(
    source: Postgres,
    target: Postgres,
    ledger: Ledger,
    how: How,
    say: Say,
    *,
    restart: bool,
    as_of_now: bool,
    level: str = "counts",
) -> Loaded | None:
    """A job that was ended goes on; None: it turns out to be published. Raises `MoveError`."""
    ledger.refuse_foreign()
    refuse_ended(ledger)
    plan = Plan.from_json(ledger.plan)
    into = asked_of(plan)
    with reached_target(target, into) as conn:
        if target.identity(conn) != (plan.into or {})["server"]:
            raise MoveError(
                "is another server than the job's",
                where=target.safe_dsn,
                next_step=f"name {(plan.into or {})['target']}",
            )
        if is_published(conn, ledger):
            ledger.manifest["status"] = "complete"
            ledger.save()
            return None
        goal = matched(conn, into, heads_of(conn, plan))

        def restarted(fresh: Plan) -> None:
            make_stages(conn, fresh, goal)

        restart = restart or not ledger.records()
        if not restart:
            empty_unfinished(conn, plan, goal, ledger)
        make = _maker(target, conn, goal)
        done = ledger.records()
        if restart or len(done) < len(plan.chunks):
            resume(
                source, ledger, how, say, restart=restart, as_of_now=as_of_now, make=make, restarted=restarted
            ).__exit__()
        return publish_staged(target, conn, ledger, into, how, level)


@contextlib.contextmanager
def reached_target(target: Postgres, into: Into) -> Iterator[psycopg.Connection[Any]]:
    try:
        with reached(target, into) as conn:
            yield conn
    except psycopg.Error as error:
        raise failure(error, into.table) from None


def make_stages(conn: psycopg.Connection[Any], plan: Plan, goal: Goal) -> None:
    """Makes the staging tables, whatever was there of them."""
    parent, children = stage_names(plan, goal)
    parts = [sql.SQL("{} {}").format(sql.Identifier(one.name), sql.SQL(one.staged)) for one in goal.columns]
    with conn.transaction():
        conn.execute(sql.SQL("drop table if exists {} cascade").format(parent))
        conn.execute(sql.SQL("create unlogged table {} ({})").format(parent, sql.SQL(", ").join(parts)))
        for child in children:
            conn.execute(sql.SQL("create unlogged table {} () inherits ({})").format(child, parent))


def empty_unfinished(conn: psycopg.Connection[Any], plan: Plan, goal: Goal, ledger: Ledger) -> None:
    done, (parent, children) = ledger.records(), stage_names(plan, goal)
    row = conn.execute("select to_regclass(%s) is not null", [parent.as_string(conn)]).fetchone()
    if not row or not row[0]:
        raise MoveError(
            "the staging tables are gone",
            where=parent.as_string(conn),
            next_step="--restart reads and copies all again",
        )
    for chunk, child in zip(plan.chunks, children, strict=True):
        if chunk.number not in done:
            conn.execute(sql.SQL("truncate {}").format(child))


def _maker(target: Postgres, conn: psycopg.Connection[Any], goal: Goal) -> Make:
    names = sql.SQL(", ").join(sql.Identifier(one.name) for one in goal.columns)

    def make(
        source: Postgres, plan: Plan, chunks: Sequence[Chunk], snapshot: Snapshot, how: How, folder: Path | None
    ) -> _core.MoveJob:
        children = dict(zip([one.number for one in plan.chunks], stage_names(plan, goal)[1], strict=True))
        copy = sql.SQL("copy {} ({}) from stdin (format binary)")
        name = application(plan.id)
        return _core.MoveJob(
            {
                "connection": {**source.conninfo(), "application_name": name},
                "session_sql": session_sql(snapshot.conn, snapshot.id),
                "target": {
                    "connection": {**target.conninfo(), "application_name": name},
                    "session_sql": [session_settings(conn, lasting=True)],
                },
                "tables": [{"columns": [one.spec() for one in table.columns]} for table in plan.tables],
                "chunks": [
                    {
                        "number": chunk.number,
                        "table": chunk.table,
                        "sql": copy_sql(snapshot.conn, plan.tables, chunk),
                        "path": None,
                        "raw": True,
                        "into": copy.format(children[chunk.number], names).as_string(conn),
                    }
                    for chunk in chunks
                ],
                "workers": how.workers,
                "memory_bytes": how.memory_bytes,
                "rate_bytes_per_s": how.rate_bytes_per_s,
                "cost_sql": cost_sql(snapshot.conn.info.server_version),
            }
        )

    return make
