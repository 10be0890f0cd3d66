"""Indexes and constraints that are dropped before rows are loaded and created again afterwards, in one transaction.

Anything that other objects depend on stays: keys referenced by foreign keys of other tables or by views, a replica
identity, an index used for CLUSTER, an index in a separate tablespace, a constraint that was never validated. The user
is informed of all of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.errors import MoveError

CONSTRAINTS_SQL = """
select c.conname::text, pg_get_constraintdef(c.oid), c.convalidated and c.coninhcount = 0, i.indisreplident,
       i.indisclustered, coalesce(ic.reltablespace, 0) <> 0, obj_description(c.oid, 'pg_constraint')
from pg_catalog.pg_constraint c left join pg_catalog.pg_index i on i.indexrelid = c.conindid and c.contype <> 'f'
left join pg_catalog.pg_class ic on ic.oid = i.indexrelid
where c.conrelid = %s::oid and c.contype in ('p', 'u', 'x', 'f')
order by c.contype <> 'f', c.conname
"""
INDEXES_SQL = """
select n.nspname::text, ic.relname::text, pg_get_indexdef(i.indexrelid), i.indisvalid, i.indisreplident,
       i.indisclustered, ic.reltablespace <> 0, obj_description(i.indexrelid, 'pg_class')
from pg_catalog.pg_index i join pg_catalog.pg_class ic on ic.oid = i.indexrelid
join pg_catalog.pg_namespace n on n.oid = ic.relnamespace
where i.indrelid = %s::oid
  and not exists (select from pg_catalog.pg_constraint c where c.conindid = i.indexrelid and c.conrelid = i.indrelid)
order by ic.relname
"""
KEEP_REASONS = (
    "it is not valid",
    "it is the replica identity",
    "the table is clustered on it",
    "it has a tablespace of its own",
)


@dataclass
class DeferredIndexes:
    """Indexes and constraints: the dropped ones with statements that recreate them, the kept ones with the reason."""

    again: list[tuple[str, sql.Composed]]
    kept: list[str]

    def recreate(self, conn: psycopg.Connection[Any]) -> tuple[str, ...]:
        """Create the dropped indexes and constraints again, foreign keys last, and return their names."""
        for _, statement in reversed(self.again):
            conn.execute(statement)
        return tuple(name for name, _ in reversed(self.again))


def drop_indexes(conn: psycopg.Connection[Any], oid: int, table: sql.Composable, kind: str) -> DeferredIndexes:
    """Drop the table's indexes and constraints; must be called inside a transaction.

    Raises:
        MoveError: The table is partitioned.
        psycopg.Error: The server reports an error.
    """
    if kind != "r":
        raise MoveError(
            "is a partitioned table, whose indexes belong to its partitions",
            where="--defer-indexes",
            next_step="load each partition by itself, or leave --defer-indexes out",
        )
    conn.execute(sql.SQL("lock table {} in access exclusive mode").format(table))
    found = DeferredIndexes([], [])
    for name, definition, valid, *rest, comment in conn.execute(CONSTRAINTS_SQL, [oid]).fetchall():
        one = sql.Identifier(name)
        # The server itself wrote the definition, so it is safe as SQL.
        again = [sql.SQL("alter table {} add constraint {} {}").format(table, one, sql.SQL(definition))]
        if comment is not None:
            again.append(sql.SQL("comment on constraint {} on {} is {}").format(one, table, comment))
        gone = sql.SQL("alter table {} drop constraint {}").format(table, one)
        _drop(conn, found, name, gone, sql.SQL("; ").join(again), [not valid, *rest])
    for schema, name, definition, valid, *rest, comment in conn.execute(INDEXES_SQL, [oid]).fetchall():
        one = sql.Identifier(schema, name)
        again = [sql.Composed([sql.SQL(definition)])]
        if comment is not None:
            again.append(sql.SQL("comment on index {} is {}").format(one, comment))
        _drop(conn, found, name, sql.SQL("drop index {}").format(one), sql.SQL("; ").join(again), [not valid, *rest])
    return found


def _drop(
    conn: psycopg.Connection[Any],
    deferred_indexes: DeferredIndexes,
    name: str,
    gone: sql.Composed,
    again: sql.Composed,
    reasons: list[bool | None],
) -> None:
    why = next((why for why, holds in zip(KEEP_REASONS, reasons, strict=True) if holds), None)
    if why is None:
        try:
            with conn.transaction():
                conn.execute(gone)
        except psycopg.errors.DependentObjectsStillExist:
            why = "another object depends on it"
    if why is None:
        deferred_indexes.again.append((name, again))
    else:
        deferred_indexes.kept.append(f"{name}: {why}")
