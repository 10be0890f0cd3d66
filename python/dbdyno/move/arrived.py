"""Rows of another server that stand in staging tables beside their target: looked at once more, and published in one
transaction, whose number is in the ledger before it commits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from dbdyno import _core
from dbdyno.bench.postgres.server import Postgres
from dbdyno.errors import MoveError
from dbdyno.move import attach, partitions
from dbdyno.move.cost import sentence
from dbdyno.move.goal import Goal, maker, matched
from dbdyno.move.into import PARTITIONS, Into, Loaded
from dbdyno.move.ledger import Ledger
from dbdyno.move.proof import MODULUS, total
from dbdyno.move.publish import Staged, publish
from dbdyno.move.rejects import Rejects
from dbdyno.move.run import How, Plan, new_id
from dbdyno.move.source import application, session_settings
from dbdyno.move.staging import FILE, PREFIX, ROW

Heads = list[dict[str, Any]]


def asked_for(into: Into, target: str) -> dict[str, Any]:
    """What the plan says of the target."""
    rejects = None if into.rejects is None else str(into.rejects.absolute())
    return {**asdict(into), "rejects": rejects, "target": target}


def asked_of(plan: Plan) -> Into:
    """What was asked for, from a plan whose seal holds."""
    given = dict(plan.into or {})
    for name in ("target", "server"):
        given.pop(name)
    rejects = None if given["rejects"] is None else Path(given["rejects"])
    return Into(**{**given, "key": tuple(given["key"]), "rejects": rejects})


def heads_of(conn: psycopg.Connection[Any], plan: Plan) -> Heads:
    """The columns as files would have them: what each is staged as."""
    columns = plan.tables[0].columns
    asked = "select format_type(to_regtype(name), -1) from unnest(%s::text[]) with ordinality u(name, n) order by n"
    names = [f'pg_catalog."{one.wire or "text"}"' for one in columns]
    types = [row[0] for row in conn.execute(asked, [names])]
    lost = next((one for one, found in zip(columns, types, strict=True) if found is None), None)
    if lost is not None:
        raise MoveError(
            f"is {lost.pg_type}, which the target does not know",
            where=f"column {lost.name}",
            next_step="leave it out by --columns, or move it as text by way of files",
        )
    return [
        {"name": one.name, "holds": found, "pg_type": one.pg_type, "came": one.pg_type, "arrow": one.pg_type}
        for one, found in zip(columns, types, strict=True)
    ]


def stage_names(plan: Plan, goal: Goal) -> tuple[sql.Identifier, list[sql.Identifier]]:
    """The staging table that all others inherit from, and one for each chunk."""
    parent = f"{PREFIX}{plan.id}"
    return (
        sql.Identifier(goal.schema, parent),
        [sql.Identifier(goal.schema, f"{parent}_{chunk.number}") for chunk in plan.chunks],
    )


def publish_staged(
    target: Postgres, conn: psycopg.Connection[Any], ledger: Ledger, into: Into, how: How, level: str
) -> Loaded:
    plan = Plan.from_json(ledger.plan)
    heads = heads_of(conn, plan)
    goal = matched(conn, into, heads)
    parent = stage_names(plan, goal)[0]
    records = ledger.records()
    rows = sum(one["rows"] for one in records.values())
    here = conn.execute(sql.SQL("select count(*) from {}").format(parent)).fetchone()
    if here is None or here[0] != rows:
        raise MoveError(
            f"{rows:,} rows were staged and {here[0] if here else 0:,} are there: a restart of the server empties"
            " unlogged tables",
            where=parent.as_string(conn),
            next_step=f"dbdyno move resume {ledger.folder} --restart",
        )
    again = level in ("source", "target")
    if again:
        _read_again(target, conn, parent, goal, total(records), how)

    def promised(inside: psycopg.Connection[Any]) -> None:
        row = inside.execute("select txid_current()").fetchone()
        ledger.manifest["publishing"] = row[0] if row else None
        ledger.save()

    compare, rejects = level == "target", _rejects(into, plan)
    with conn.transaction():
        if compare and into.mode == "insert":
            # Of the whole transaction, in which `publish` is a part.
            conn.execute("set transaction isolation level repeatable read")
        stage = parent if rejects is None else _placed(conn, plan, goal)
        staged = goal.staged(stage, rows)
        if into.mode == PARTITIONS:
            loaded = _by_partitions(conn, goal, staged, into, rejects, compare=compare)
        else:
            loaded = publish(conn, staged, into, rejects, compare=compare, first=maker(into, heads))
        conn.execute(sql.SQL("drop table if exists {} cascade").format(parent))
        promised(conn)
    ledger.manifest["status"] = "complete"
    ledger.save()
    told = sentence(ledger.manifest.get("cost", []))
    return replace(loaded, files=len(plan.chunks), source="source", read_again=again, cost=told)


def _rejects(into: Into, plan: Plan) -> Rejects | None:
    """Rejected rows are named by their chunk and their place in it."""
    if into.rejects is None:
        return None
    return Rejects(into.rejects, into.rejects_most, [Path(f"chunk {one.number}") for one in plan.chunks])


def _placed(conn: psycopg.Connection[Any], plan: Plan, goal: Goal) -> sql.Identifier:
    """The staged rows once more, each with its place: bad ones are found by it. Inside of a transaction."""
    parent, children = stage_names(plan, goal)
    placed = sql.Identifier(goal.schema, f"{PREFIX}{plan.id}_placed")
    text = sql.SQL("create unlogged table {} as select 0 as {}, 0::bigint as {}, s.* from {} s limit 0")
    conn.execute(text.format(placed, sql.Identifier(FILE), sql.Identifier(ROW), parent))
    for place, child in enumerate(children):
        text = sql.SQL("insert into {} select {}, row_number() over (order by s.ctid), s.* from {} s")
        conn.execute(text.format(placed, place, child))
    return placed


def _by_partitions(
    conn: psycopg.Connection[Any], goal: Goal, staged: Staged, into: Into, rejects: Rejects | None, *, compare: bool
) -> Loaded:
    """The staged rows into a copy of the partitions, and these into their places. Inside of a transaction."""
    names = [one.name for one in goal.columns if not one.generated]
    shadow = partitions.make(conn, partitions.wanted(conn, goal.oid, into, names), new_id())
    inside = replace(into, mode="replace")
    loaded = publish(conn, replace(staged, table=shadow.root), inside, rejects, compare=compare)
    replaced = attach.publish(conn, shadow, into, names)
    partitions.drop(conn, shadow)
    return replace(loaded, mode=into.mode, replaced=replaced)


def _read_again(
    target: Postgres, conn: psycopg.Connection[Any], parent: sql.Identifier, goal: Goal, wanted: str, how: How
) -> None:
    names = sql.SQL(", ").join(sql.Identifier(one.name) for one in goal.columns)
    text = sql.SQL("copy (select {} from {}) to stdout (format binary)")
    columns = [{"name": one.name, "kind": "text", "pg_type": one.staged} for one in goal.columns]
    job = _core.MoveJob(
        {
            "connection": {**target.conninfo(), "application_name": application("reads again")},
            "session_sql": [session_settings(conn, lasting=True)],
            "tables": [{"columns": columns}],
            "chunks": [
                {"number": 0, "table": 0, "sql": text.format(names, parent).as_string(conn), "path": None, "raw": True}
            ],
            "workers": 1,
            "memory_bytes": how.memory_bytes,
        }
    )
    found: Mapping[str, Any] | None = None
    while (event := job.next(0.2)) is not None:
        if "failed" in event:
            raise MoveError(event["failed"]["message"], where="reading the staged rows again")
        found = event.get("done", found)
    if found is None or int(found["hash"], 16) % MODULUS != int(wanted, 16):
        raise MoveError(
            "the staged rows are not those of the source; nothing of the table was changed",
            next_step="report it, with the versions of dbdyno and of both servers",
        )


def is_published(conn: psycopg.Connection[Any], ledger: Ledger) -> bool:
    """What the server says of the transaction that published it."""
    number = ledger.manifest.get("publishing")
    if number is None:
        return False
    row = conn.execute("select txid_status(%s)", [int(number)]).fetchone()
    state = row[0] if row else None
    if state == "in progress":
        raise MoveError(
            "the job is being published", where=str(ledger.folder), next_step="wait a moment, then resume again"
        )
    return bool(state == "committed")
