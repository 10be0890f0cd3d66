"""Loads of several tables into one server: the target of each, and the order in which they are published.

All are published in one transaction: tables that foreign keys reference come first, so that each key finds its row.
`replace` empties all of them in one statement, because a table that another one references cannot be emptied alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.errors import MoveError
from dbdyno.move.engines.postgres.source import Table
from dbdyno.move.engines.postgres.target import TargetTable
from dbdyno.move.loading.request import PARTITIONS, LoadRequest

EACH = "*"
"""Target that keeps each table's original name; `schema.*` keeps the name but puts the table into that schema."""
QuoteName = Callable[..., str]
REFERS_SQL = """
select distinct conrelid::bigint, confrelid::bigint from pg_catalog.pg_constraint
where contype = 'f' and conrelid = any(%(oids)s::oid[]) and confrelid = any(%(oids)s::oid[]) and conrelid <> confrelid
"""


def load_requests(
    tables: Sequence[Table], load_request: LoadRequest, quoted: QuoteName | None = None
) -> list[LoadRequest]:
    """Return the target of each table; `quoted` writes names in the target's SQL syntax.

    Raises:
        MoveError: Two tables would go into the same target, or the mode allows only one table.
    """
    if load_request.table != EACH and not load_request.table.endswith(f".{EACH}"):
        if len(tables) != 1:
            raise MoveError(
                f"{len(tables)} tables cannot be moved into one table",
                where=f"--into {load_request.table}",
                next_step="name a schema as the target: --into 'schema.*'",
            )
        return [load_request]
    if load_request.mode == PARTITIONS:
        raise MoveError(
            f"--mode {PARTITIONS} works on one table at a time",
            where="--tables",
            next_step="move each table in a job of its own",
        )
    schema, quoted = load_request.table.removesuffix(EACH), quoted or _quote
    names = [f"{schema}{quoted(one.name)}" if schema else quoted(one.schema, one.name) for one in tables]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise MoveError(
            "two source tables would be loaded into this table",
            where=twice,
            next_step="move one of the two in a job of its own",
        )
    return [replace(load_request, table=name) for name in names]


def _quote(*names: str) -> str:
    return sql.Identifier(*names).as_string(None)


def publish_order(conn: psycopg.Connection[Any], goals: Sequence[TargetTable]) -> list[int]:
    """Return the indexes of the tables in publishing order: referenced tables before those that reference them.

    Tables in a cycle keep the given order: the server then reports which key has no row.
    """
    places = {one.oid: place for place, one in enumerate(goals)}
    refers: dict[int, set[int]] = {place: set() for place in places.values()}
    for child, parent in conn.execute(REFERS_SQL, {"oids": list(places)}).fetchall():
        refers[places[child]].add(places[parent])
    return sort_by_references(refers)


def sort_by_references(refers: Mapping[int, set[int]]) -> list[int]:
    """Return the indexes so that each item follows those that it refers to; items in a cycle keep the given order."""
    order: list[int] = []
    while len(order) < len(refers):
        left = [place for place in sorted(refers) if place not in order]
        free = [place for place in left if refers[place] <= set(order)]
        order += free or left[:1]
    return order


def truncate(conn: psycopg.Connection[Any], goals: Sequence[TargetTable]) -> None:
    """Truncate all tables in one statement."""
    names = sql.SQL(", ").join(sql.Identifier(one.schema, one.name) for one in goals)
    conn.execute(sql.SQL("truncate {}").format(names))
