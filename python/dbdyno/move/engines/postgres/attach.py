"""Replacement of a partitioned table's rows by attaching new partitions.

Rows are written once, into a copy of the table's partitions; then one transaction exchanges each filled partition for
the old one. Everything slow happens before the table is locked: keys and indexes are built on the new partition, and a
CHECK that repeats its bounds is validated there, so that ATTACH neither builds an index nor scans. If the table has a
default partition, the server scans that one during ATTACH.

    replace               all partitions: those without new rows are emptied
    replace-partitions    only partitions with new rows, as a whole; the others are not touched
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from dbdyno.move.engines.postgres import partitions, swap
from dbdyno.move.engines.postgres.partitions import Node, Shadow
from dbdyno.move.loading.request import LoadRequest
from dbdyno.move.reading.run import Say

CHECK = "dbdyno_move_bound"
CONSTRAINTS_SQL = """
select c.conname::text, pg_get_constraintdef(c.oid) from pg_catalog.pg_constraint c
where c.conrelid = %s::oid and c.contype in ('p', 'u', 'x', 'f') order by c.contype = 'f', c.conname
"""
INDEXES_SQL = """
select ic.relname::text, pg_get_indexdef(ic.oid), format('CREATE %%sINDEX %%I ON %%I.%%I ',
       case when i.indisunique then 'UNIQUE ' else '' end, ic.relname, n.nspname, c.relname)
from pg_catalog.pg_index i join pg_catalog.pg_class ic on ic.oid = i.indexrelid
join pg_catalog.pg_class c on c.oid = i.indrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where i.indrelid = %s::oid
  and not exists (select from pg_catalog.pg_constraint c where c.conindid = i.indexrelid and c.conrelid = i.indrelid)
order by ic.relname
"""

Names = list[tuple[str, str, str]]
"""For each object: its temporary name, its final name, and whether it is a constraint or an index."""


def publish(
    conn: psycopg.Connection[Any],
    shadow: Shadow,
    load_request: LoadRequest,
    columns: Sequence[str],
    say: Say | None = None,
) -> tuple[str, ...]:
    """Exchange all filled partitions for the old ones, and return their names.

    Args:
        conn: The session that publishes.
        shadow: The copy of the partition tree that holds the new rows.
        load_request: The target and the mode.
        columns: Names of the columns that are written.
        say: Called with a line for the user if rows must be written twice.

    Raises:
        MoveError: The table cannot be replaced, or was altered meanwhile; nothing has changed.
        psycopg.Error: The server reports an error; nothing has changed.
    """
    filled = [one for one in shadow.leaves() if _has_rows(conn, shadow.copy(one))]
    # Inside the caller's transaction all rows are its own: an older snapshot sees none of them.
    apart = conn.info.transaction_status == TransactionStatus.IDLE and swap.has_older_snapshots(conn)
    if apart and say is not None:
        say(
            "rows are written twice, because a session has a snapshot from before the load and would see "
            "only part of them"
        )
    names = {} if apart else {one.oid: _prepare(conn, shadow, one) for one in filled}
    with conn.transaction():
        conn.execute(sql.SQL("lock table {} in access exclusive mode").format(shadow.nodes[0].table))
        reason = _changes_of(conn, shadow, [] if apart else filled, columns)
        if reason is not None:
            raise partitions.refusal(load_request.table, reason)
        for one in shadow.leaves():
            if one in filled and not apart:
                _exchange(conn, shadow, one, names[one.oid])
            elif one in filled or load_request.mode == "replace":
                conn.execute(sql.SQL("truncate {}").format(one.table))
        if apart:
            _add(conn, shadow, columns)
    return tuple(one.name for one in filled)


def _add(conn: psycopg.Connection[Any], shadow: Shadow, columns: Sequence[str]) -> None:
    listed = sql.SQL(", ").join(map(sql.Identifier, columns))
    text = sql.SQL("insert into {} ({}) overriding system value select {} from {}")
    conn.execute(text.format(shadow.nodes[0].table, listed, listed, shadow.root))


def _has_rows(conn: psycopg.Connection[Any], copy: sql.Identifier) -> bool:
    return conn.execute(sql.SQL("select exists (select from {})").format(copy)).fetchone() == (True,)


def _prepare(conn: psycopg.Connection[Any], shadow: Shadow, old: Node) -> Names:
    """Detach the new partition from the copy; build the old one's keys and indexes on it, under temporary names."""
    copy, parent = shadow.copy(old), next(one for one in shadow.nodes if one.oid == old.parent)
    names: Names = []
    with conn.transaction():
        conn.execute(sql.SQL("alter table {} detach partition {}").format(shadow.copy(parent), copy))
        if old.constraint is not None:
            text = sql.SQL("alter table {} add constraint {} check ({})")
            conn.execute(text.format(copy, sql.Identifier(CHECK), sql.SQL(old.constraint)))
        for name, definition in conn.execute(CONSTRAINTS_SQL, [old.oid]).fetchall():
            now = f"{shadow.names[old.oid]}_{len(names)}"
            names.append((now, name, "constraint"))
            text = sql.SQL("alter table {} add constraint {} {}")
            conn.execute(text.format(copy, sql.Identifier(now), sql.SQL(definition)))
        for name, definition, begins in conn.execute(INDEXES_SQL, [old.oid]).fetchall():
            if not definition.startswith(begins):
                raise partitions.refusal(old.name, f"the definition of index {name} is not understood")
            now = f"{shadow.names[old.oid]}_{len(names)}"
            names.append((now, name, "index"))
            unique = sql.SQL("unique " if begins.startswith("CREATE UNIQUE") else "")
            text = sql.SQL("create {}index {} on {} {}")
            conn.execute(text.format(unique, sql.Identifier(now), copy, sql.SQL(definition.removeprefix(begins))))
    if conn.execute(swap.ANALYSED_SQL, [old.schema, old.name]).fetchone() == (True,):
        conn.execute(sql.SQL("analyze {}").format(copy))
    return names


def _changes_of(
    conn: psycopg.Connection[Any], shadow: Shadow, filled: Sequence[Node], columns: Sequence[str]
) -> str | None:
    """Return what changed in the table since it was copied, or None; the caller has locked it exclusively."""
    if partitions.partition_tree(conn, shadow.nodes[0].oid) != shadow.nodes:
        return "partitions were added, removed or altered during the load"
    reason = partitions.exchange_obstacle(conn, shadow.nodes, columns)
    if reason is not None:
        return reason
    for one in filled:
        copy = shadow.copy(one)
        new = conn.execute("select to_regclass(%s)::oid::bigint", [copy.as_string(conn)]).fetchone()
        reason = swap.copy_privileges(conn, one.oid, new[0] if new else 0, copy, but=CHECK)
        if reason is not None:
            return f"partition {one.name}: {reason}"
    return None


def _exchange(conn: psycopg.Connection[Any], shadow: Shadow, old: Node, names: Names) -> None:
    parent = next(one.table for one in shadow.nodes if one.oid == old.parent)
    new = shadow.copy(old)
    row = conn.execute("select obj_description(%s::oid, 'pg_class')", [old.oid]).fetchone()
    conn.execute(sql.SQL("alter table {} detach partition {}").format(parent, old.table))
    conn.execute(sql.SQL("drop table {}").format(old.table))
    conn.execute(sql.SQL("alter table {} rename to {}").format(new, sql.Identifier(old.name)))
    for now, name, kind in names:
        before, after = sql.Identifier(now), sql.Identifier(name)
        if kind == "constraint":
            conn.execute(sql.SQL("alter table {} rename constraint {} to {}").format(old.table, before, after))
        else:
            conn.execute(sql.SQL("alter index {} rename to {}").format(sql.Identifier(old.schema, now), after))
    bound = sql.SQL(old.bound or "default")
    conn.execute(sql.SQL("alter table {} attach partition {} {}").format(parent, old.table, bound))
    if old.constraint is not None:
        conn.execute(sql.SQL("alter table {} drop constraint {}").format(old.table, sql.Identifier(CHECK)))
    if row and row[0] is not None:
        conn.execute(sql.SQL("comment on table {} is {}").format(old.table, row[0]))
