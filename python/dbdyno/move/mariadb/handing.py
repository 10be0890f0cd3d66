"""From server to server where one of them is a MariaDB: the same splits, ledger and modes as between PostgreSQLs.

Each chunk goes into a staging table of its own beside the target, made anew whenever the chunk is read; one transaction
publishes them all.

    MariaDB -> PostgreSQL    rows in COPY's binary form, handed on as they are made
    any -> MariaDB           rows decoded, then lines of LOAD DATA
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dbdyno import _core
from dbdyno.bench.mariadb.server import MariaDB
from dbdyno.bench.postgres.server import Postgres
from dbdyno.errors import MoveError
from dbdyno.move import across as handed
from dbdyno.move import arrived
from dbdyno.move.cost import cost_sql, sentence
from dbdyno.move.filed import refuse_unstaged, refused, rejects_of
from dbdyno.move.goal import Goal as PostgresGoal
from dbdyno.move.into import Into, Loaded, LoadedAll
from dbdyno.move.ledger import Ledger
from dbdyno.move.mariadb import job as reading
from dbdyno.move.mariadb.inward import made, reached, read_staged
from dbdyno.move.mariadb.publish import publish
from dbdyno.move.mariadb.source import select_sql
from dbdyno.move.mariadb.target import (
    WRITING,
    Goal,
    Heads,
    drop_stages,
    is_published,
    is_there,
    load_sql,
    make_stages,
    matched,
    staged_rows,
)
from dbdyno.move.plural import counted
from dbdyno.move.proof import total
from dbdyno.move.resume import refuse_ended, resume
from dbdyno.move.run import How, Plan, Say, begin, work
from dbdyno.move.source import Snapshot, Wish, application, copy_sql, session_settings, session_sql
from dbdyno.move.splits import Chunk

STAGED = {
    "bool": "tinyint(1)",
    "int2": "smallint",
    "int4": "int",
    "int8": "bigint",
    "oid": "int unsigned",
    "float4": "float",
    "float8": "double",
    "date": "date",
    "time": "time(6)",
    "timestamp": "datetime(6)",
    "timestamptz": "datetime(6)",
    "bytea": "longblob",
}
"""How a column of each kind is staged; else as text."""


def move(
    source: Postgres | MariaDB,
    wish: Wish,
    target: Postgres | MariaDB,
    into: Into,
    folder: Path,
    how: How,
    say: Say,
    level: str,
) -> Loaded | LoadedAll:
    """A new job, from its snapshot to the commit. Raises `MoveError`; the target has not changed then."""
    rejects_of(into, [])
    asked = arrived.asked_for(into, target.safe_dsn)
    if isinstance(target, Postgres):
        assert isinstance(source, MariaDB)
        with handed.reached_target(target, into) as conn:
            ledger = reading.begin(source, wish, folder, how, say, {**asked, "server": target.identity(conn)})
            plan = Plan.from_json(ledger.plan)
            try:
                there = arrived.goals_of(conn, plan, into)
                handed.make_stages(conn, plan, there)
            except BaseException:
                ledger.discard()
                raise
            reading.work(source, ledger, how, say, _to_postgres(target, conn, there), completes=False)
            return arrived.publish_staged(target, conn, ledger, into, how, level, say)
    with reached(target, "begins") as conn:
        asked["server"] = target.identity(conn)
        if isinstance(source, MariaDB):
            ledger = reading.begin(source, wish, folder, how, say, asked)
        else:
            ledger, snapshot = begin(source, wish, folder, how, say)
        _refuse_several(ledger)
        _keep_kinds(ledger, asked)
        with made(conn, target, into, _heads(Plan.from_json(ledger.plan))) as goal:
            if isinstance(source, MariaDB):
                reading.work(source, ledger, how, say, _lines(target, conn, into), completes=False)
            else:
                with snapshot:
                    work(source, ledger, snapshot, how, say, _lines_of_postgres(target, conn, into))
            return _publish(
                target, conn, ledger, replace(into, create=False), goal, how, level, say, created=into.create
            )


def go_on(
    source: Postgres | MariaDB,
    target: Postgres | MariaDB,
    ledger: Ledger,
    how: How,
    say: Say,
    *,
    restart: bool,
    as_of_now: bool,
    level: str,
) -> Loaded | LoadedAll | None:
    """A job that was ended goes on; None: it turns out to be published. Raises `MoveError`."""
    ledger.refuse_foreign()
    refuse_ended(ledger)
    plan = Plan.from_json(ledger.plan)
    into, restart = arrived.asked_of(plan), restart or not ledger.records()
    again: dict[str, Any] = {"restart": restart, "as_of_now": as_of_now}
    if isinstance(target, Postgres):
        assert isinstance(source, MariaDB)
        with handed.reached_target(target, into) as conn:
            _refuse_other(target, conn, plan)
            if arrived.is_published(conn, ledger):
                _complete(ledger)
                return None
            there = arrived.goals_of(conn, plan, into)
            if not restart:
                handed.empty_unfinished(conn, plan, there, ledger)
            if restart or len(ledger.records()) < len(plan.chunks):
                pieces = _to_postgres(target, conn, there)
                stage = lambda fresh: handed.make_stages(conn, fresh, there)  # noqa: E731
                reading.resume(source, ledger, how, say, pieces, restarted=stage, completes=False, **again)
            else:
                ledger.attempt("resumed", how.workers, how.memory_bytes)
            return arrived.publish_staged(target, conn, ledger, into, how, level, say)
    with reached(target, plan.id) as conn:
        _refuse_other(target, conn, plan)
        created = into.create
        into = replace(into, create=created and not is_there(conn, str(target.parameters.get("database")), into))
        with made(conn, target, into, _heads(plan)) as goal:
            if is_published(conn, goal, plan.id):
                drop_stages(conn, goal, plan.id, [one.number for one in plan.chunks])
                _complete(ledger)
                return None
            if restart or len(ledger.records()) < len(plan.chunks):
                if isinstance(source, MariaDB):
                    reading.resume(source, ledger, how, say, _lines(target, conn, into), completes=False, **again)
                else:
                    make = _lines_of_postgres(target, conn, into)
                    resume(source, ledger, how, say, make=make, **again).__exit__()
            else:
                ledger.attempt("resumed", how.workers, how.memory_bytes)
            return _publish(target, conn, ledger, into, goal, how, level, say, created=created)


def _refuse_several(ledger: Ledger) -> None:
    plan = Plan.from_json(ledger.plan)
    if len(plan.tables) != 1:
        ledger.discard()
        raise MoveError(
            f"{len(plan.tables)} tables are meant: into a MariaDB goes one at a time",
            where="--tables",
            next_step="move them one by one",
        )


def _keep_kinds(ledger: Ledger, asked: Mapping[str, Any]) -> None:
    """A plan for files becomes one for another server: its columns stay as they are read."""
    plan = Plan.from_json(ledger.plan)
    chunks = tuple(replace(one, file="") for one in plan.chunks)
    ledger.manifest["plan"] = replace(plan, chunks=chunks, into=dict(asked)).to_json()
    ledger.save()


def _refuse_other(target: Postgres | MariaDB, conn: Any, plan: Plan) -> None:
    asked = plan.into or {}
    if target.identity(conn) != asked["server"]:
        raise MoveError("is another server than the job's", where=target.safe_dsn, next_step=f"name {asked['target']}")


def _complete(ledger: Ledger) -> None:
    ledger.manifest["status"] = "complete"
    ledger.save()


def _heads(plan: Plan) -> Heads:
    return [
        {
            "name": one.name,
            "staged": f"decimal({one.precision},{one.scale})"
            if one.kind == "decimal"
            else STAGED.get(one.kind, "longtext"),
            "mariadb_type": one.mariadb_type,
            "pg_type": one.pg_type,
            "arrow": one.kind,
        }
        for one in plan.tables[0].columns
    ]


def _to_postgres(target: Postgres, conn: Any, goals: Sequence[PostgresGoal]) -> reading.Pieces:
    def pieces(plan: Plan, chunks: Sequence[Chunk]) -> dict[str, Any]:
        copy = handed.copies(conn, plan, goals)
        return {
            "target": {
                "connection": {**target.conninfo(), "application_name": application(plan.id)},
                "session_sql": [session_settings(conn, lasting=True)],
            },
            "tables": reading.specs(plan),
            "chunks": [
                {
                    "number": chunk.number,
                    "table": chunk.table,
                    "sql": select_sql(plan.tables, chunk),
                    "path": None,
                    "raw": True,
                    "into": copy[chunk.number],
                }
                for chunk in chunks
            ],
        }

    return pieces


def _staged_anew(target: MariaDB, conn: Any, into: Into, plan: Plan, chunks: Sequence[Chunk]) -> Goal:
    """What a killed worker left half done is gone."""
    database = str(target.parameters.get("database") or "")
    goal = matched(conn, database, replace(into, create=False), _heads(plan))
    make_stages(conn, goal, plan.id, [one.number for one in chunks], placed=into.rejects is not None)
    return goal


def _placed(into: Into, plan: Plan, number: int) -> int | None:
    """The number that each row of a chunk gets with its own, where bad ones are to be found by it."""
    return None if into.rejects is None else [one.number for one in plan.chunks].index(number)


def _lines(target: MariaDB, conn: Any, into: Into) -> reading.Pieces:
    def pieces(plan: Plan, chunks: Sequence[Chunk]) -> dict[str, Any]:
        goal = _staged_anew(target, conn, into, plan, chunks)
        return {
            "target": _target(target, plan),
            "tables": reading.specs(plan),
            "chunks": [
                {
                    "number": one.number,
                    "table": one.table,
                    "sql": select_sql(plan.tables, one),
                    "path": None,
                    "place": _placed(into, plan, one.number),
                    "into": load_sql(goal, plan.id, one.number, placed=into.rejects is not None),
                }
                for one in chunks
            ],
            "rejects": into.rejects is not None,
        }

    return pieces


def _lines_of_postgres(target: MariaDB, conn: Any, into: Into) -> Any:
    def make(
        source: Postgres, plan: Plan, chunks: Sequence[Chunk], snapshot: Snapshot, how: How, folder: Path | None
    ) -> _core.MoveJob:
        goal = _staged_anew(target, conn, into, plan, chunks)
        return _core.MoveJob(
            {
                "connection": {**source.conninfo(), "application_name": application(plan.id)},
                "session_sql": session_sql(snapshot.conn, snapshot.id),
                "target": _target(target, plan),
                "tables": reading.specs(plan),
                "chunks": [
                    {
                        "number": one.number,
                        "table": one.table,
                        "sql": copy_sql(snapshot.conn, plan.tables, one),
                        "path": None,
                        "place": _placed(into, plan, one.number),
                        "into": load_sql(goal, plan.id, one.number, placed=into.rejects is not None),
                    }
                    for one in chunks
                ],
                "rejects": into.rejects is not None,
                "workers": how.workers,
                "memory_bytes": how.memory_bytes,
                "rate_bytes_per_s": how.rate_bytes_per_s,
                "cost_sql": cost_sql(snapshot.conn.info.server_version),
            }
        )

    return make


def _target(target: MariaDB, plan: Plan) -> dict[str, Any]:
    return {"connection": target.load_connection(application(plan.id)), "session_sql": list(WRITING)}


def _publish(
    target: MariaDB, conn: Any, ledger: Ledger, into: Into, goal: Goal, how: How, level: str, say: Say, *, created: bool
) -> Loaded:
    rows = sum(one["rows"] for one in ledger.records().values())
    say(arrived.PUBLISHING.format(counted(rows, "row")))
    with ledger.phase("publishing"):
        loaded = _publish_staged(target, conn, ledger, into, goal, how, level, created=created)
        ledger.manifest["proved"] = loaded.sentences()
    return loaded


def _publish_staged(
    target: MariaDB, conn: Any, ledger: Ledger, into: Into, goal: Goal, how: How, level: str, *, created: bool
) -> Loaded:
    plan, records = Plan.from_json(ledger.plan), ledger.records()
    # A column may have become text meanwhile.
    goal = matched(conn, "", replace(into, create=False, table=goal.table), _heads(plan))
    numbers = [one.number for one in plan.chunks]
    count = sum(one["rows"] for one in records.values())
    here = staged_rows(conn, goal, plan.id, numbers)
    rejects = arrived.rejects_for(into, plan)
    if rejects is not None:
        for number, one in records.items():
            refused(rejects, numbers.index(number), one["refused"])
    kept = count - sum(len(one["refused"]) for one in records.values())
    if here != kept:
        raise MoveError(
            f"{kept:,} rows were staged and {here:,} are there",
            where=goal.stage(plan.id, 0),
            next_step=f"dbdyno move resume {ledger.folder} --restart",
        )
    again = level in ("source", "target")
    if again:
        refuse_unstaged(list(records.values()))
        read_staged(target, goal, plan.id, numbers, how, int(total(records), 16))
    merged, differs = publish(conn, goal, plan.id, numbers, into, here, rejects=rejects, compare=level == "target")
    _complete(ledger)
    drop_stages(conn, goal, plan.id, numbers)
    told = sentence(ledger.manifest.get("cost", []))
    return Loaded(
        len(numbers),
        count,
        into.mode,
        merged,
        rejected=0 if rejects is None else len(rejects.rows),
        rejects=into.rejects,
        rounded=tuple(differs),
        created=created,
        source="source",
        read_again=again,
        stands=level == "target",
        cost=told,
    )
