"""Copy of a partitioned table's tree: private, empty tables with the same partitions and bounds.

Rows are inserted into the copy's root, and the server routes each to its partition. A partition of the copy then
replaces the original one that it was created from (`attach.py`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.errors import MoveError
from dbdyno.move.engines.postgres import swap
from dbdyno.move.engines.postgres.staging import PREFIX
from dbdyno.move.loading.request import LoadRequest

TREE_SQL = """
select t.relid::oid::bigint, n.nspname::text, c.relname::text, c.relkind::text, t.level, t.parentrelid::oid::bigint,
       pg_get_expr(c.relpartbound, c.oid), pg_get_partkeydef(c.oid), pg_get_partition_constraintdef(c.oid)
from pg_partition_tree(%s::oid::regclass) t join pg_catalog.pg_class c on c.oid = t.relid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
order by t.level, t.relid
"""
ROOT_SQL = """
select case
    when pg_get_userbyid(c.relowner) <> current_user then 'it belongs to ' || pg_get_userbyid(c.relowner)
    when c.relrowsecurity or c.relhasrules then 'it has rules or row-level security'
    when exists (select from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attnum > 0
                 and a.attidentity <> '' and not a.attname = any(%s)) then 'the server makes the values of an identity'
    when exists (select from pg_catalog.pg_publication p where p.puballtables) then 'all tables are published'
    end
from pg_catalog.pg_class c where c.oid = %s::oid
"""
TREE_ODD_SQL = """
select coalesce(
    (select 'partition ' || c.relname || ' is a foreign table' from pg_catalog.pg_class c
     where c.oid = any(%(tree)s::oid[]) and c.relkind not in ('r', 'p')
     order by c.relname limit 1),
    (select 'it has the trigger ' || t.tgname from pg_catalog.pg_trigger t
     where t.tgrelid = any(%(tree)s::oid[]) and not t.tgisinternal
     order by t.tgname limit 1),
    (select 'the foreign key ' || n.conname || ' names it' from pg_catalog.pg_constraint n
     where n.confrelid = any(%(tree)s::oid[]) and n.contype = 'f'
     order by n.conparentid <> 0, n.conname limit 1),
    (select 'it is published' from pg_catalog.pg_publication_rel p where p.prrelid = any(%(tree)s::oid[]) limit 1))
"""
LIKE = "including defaults including generated including constraints including storage including comments"


@dataclass(frozen=True)
class Node:
    """Table of a partition tree: the root, a partition that is partitioned itself, or a leaf."""

    oid: int
    schema: str
    name: str
    kind: str
    level: int
    parent: int
    bound: str | None
    key: str | None
    constraint: str | None
    """SQL condition that holds for each row, from the bounds of this partition and its ancestors."""

    @property
    def table(self) -> sql.Identifier:
        """Return the table's quoted, qualified name."""
        return sql.Identifier(self.schema, self.name)


@dataclass(frozen=True)
class Shadow:
    """Copy of a partition tree, with the name of each node's copy by the node's OID.

    Copies are in the same schemas as the originals.
    """

    nodes: tuple[Node, ...]
    names: dict[int, str]

    def copy(self, node: Node) -> sql.Identifier:
        """Return the quoted name of a node's copy."""
        return sql.Identifier(node.schema, self.names[node.oid])

    @property
    def root(self) -> sql.Identifier:
        """Return the quoted name of the copy's root, into which rows are inserted."""
        return self.copy(self.nodes[0])

    def leaves(self) -> list[Node]:
        """Return the nodes that hold rows."""
        return [one for one in self.nodes if one.kind != "p"]


def partition_tree(conn: psycopg.Connection[Any], oid: int) -> tuple[Node, ...]:
    """Return a table and all partitions below it, parents first."""
    return tuple(Node(*row) for row in conn.execute(TREE_SQL, [oid]).fetchall())


def exchange_obstacle(conn: psycopg.Connection[Any], nodes: Sequence[Node], columns: Sequence[str]) -> str | None:
    """Return the reason why the table's partitions cannot be exchanged, or None if they can.

    Args:
        conn: The session.
        nodes: The partition tree.
        columns: Names of the columns that are loaded.
    """
    row = conn.execute(ROOT_SQL, [list(columns), nodes[0].oid]).fetchone()
    row = row if row and row[0] else conn.execute(TREE_ODD_SQL, {"tree": [one.oid for one in nodes]}).fetchone()
    if row and row[0]:
        return str(row[0])
    for one in nodes:
        if one.kind == "p":
            continue
        reason = swap.lost_property(conn, one.oid, of_partition=True)
        if reason is not None:
            return f"partition {one.name}: {reason}"
    return swap.visibility_obstacle(conn)


def create_copy(conn: psycopg.Connection[Any], nodes: Sequence[Node], job: str) -> Shadow:
    """Create the copy, each table in the schema of its original.

    Raises:
        psycopg.Error: The server reports an error.
    """
    shadow = Shadow(tuple(nodes), {one.oid: f"{PREFIX}{job}_{number}" for number, one in enumerate(nodes)})
    known = {one.oid: one for one in nodes}
    with conn.transaction():
        for one in nodes:
            # The server itself wrote the bounds and keys, so they are safe as SQL.
            key = sql.SQL("partition by {}").format(sql.SQL(one.key)) if one.key else sql.SQL("")
            text = sql.SQL("create table {} (like {} {}) {}")
            conn.execute(text.format(shadow.copy(one), one.table, sql.SQL(LIKE), key))
            if one.parent in known:
                text = sql.SQL("alter table {} attach partition {} {}")
                above = shadow.copy(known[one.parent])
                conn.execute(text.format(above, shadow.copy(one), sql.SQL(one.bound or "default")))
    return shadow


@contextlib.contextmanager
def temporary_copy(conn: psycopg.Connection[Any], nodes: Sequence[Node], job: str) -> Iterator[Shadow]:
    """Create the copy, and on exit drop those of its tables that did not replace an original."""
    shadow = create_copy(conn, nodes, job)
    try:
        yield shadow
    finally:
        with contextlib.suppress(psycopg.Error):
            conn.rollback()
            drop_copy(conn, shadow)


def drop_copy(conn: psycopg.Connection[Any], shadow: Shadow) -> None:
    """Drop the tables of the copy that did not replace an original."""
    for one in shadow.nodes:
        conn.execute(sql.SQL("drop table if exists {} cascade").format(shadow.copy(one)))


def wanted_tree(
    conn: psycopg.Connection[Any], oid: int, load_request: LoadRequest, columns: Sequence[str]
) -> tuple[Node, ...]:
    """Return the partition tree of a table whose partitions are to be replaced.

    Raises:
        MoveError: The table has no partitions, or they cannot be replaced.
    """
    nodes = partition_tree(conn, oid)
    if not nodes or nodes[0].kind != "p":
        raise MoveError(
            "has no partitions", where=load_request.table, next_step="use --mode replace to replace the whole table"
        )
    reason = exchange_obstacle(conn, nodes, columns)
    if reason is not None:
        raise refusal(load_request.table, reason)
    return nodes


def refusal(table: str, reason: str) -> MoveError:
    """Return the error for a table whose partitions cannot be replaced for the named reason."""
    return MoveError(
        f"its partitions cannot be replaced: {reason}",
        where=table,
        next_step="load into a partition by its own name with --mode replace, or replace the whole table",
    )
