"""Replacement or creation of a table by several workers: they fill a new table, which then takes the target's name.

Each row is written once, by all workers in parallel; from a staging table one session would write all rows a second
time. The new table is created like the target, with its privileges and comments; indexes and keys are created at the
end from the server's own definitions. This is done only if nothing else depends on the target, because views, foreign
keys, triggers, policies, publications and sequences refer to the table itself and not to its name. Otherwise, and if a
session has a snapshot that shows only a part of the new rows, the rows are staged and added in one transaction as
usual; the user learns why.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.core_types import FileColumn
from dbdyno.base.errors import MoveError
from dbdyno.move.engines.postgres import indexes
from dbdyno.move.engines.postgres.create_table import create
from dbdyno.move.engines.postgres.merging import MergeCounts
from dbdyno.move.engines.postgres.publish import StagedRows
from dbdyno.move.engines.postgres.staging import dropped_at_exit
from dbdyno.move.loading.request import LoadRequest, LoadResult

SNAPSHOTS_S = 5
"""How long to wait for sessions with an older snapshot, in seconds."""
LOOK_S = 0.1
ODD_SQL = """
select case
    when c.relkind <> 'r' or c.relhassubclass or (c.relispartition and not %(of_partition)s)
        then 'it has partitions or children, or is one'
    when not c.relispartition and exists (select from pg_catalog.pg_inherits i where i.inhrelid = c.oid)
        then 'it inherits from another table'
    when pg_get_userbyid(c.relowner) <> current_user then 'it belongs to ' || pg_get_userbyid(c.relowner)
    when c.relpersistence <> 'p' then 'it is unlogged or temporary'
    when c.relrowsecurity or c.relhasrules then 'it has rules or row-level security'
    when c.relreplident <> 'd' then 'it has a replica identity of its own'
    when c.reltablespace <> 0 then 'it has a tablespace of its own'
    when c.reloptions is not null or t.reloptions is not null then 'it has storage parameters'
    when c.reloftype <> 0 then 'it is a table of a type'
    when exists (select from pg_catalog.pg_publication p where p.puballtables) then 'all tables are published'
    when exists (select from pg_catalog.pg_seclabel s where s.objoid = c.oid) then 'it has a security label'
    when exists (select from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attnum > 0
                 and not a.attisdropped and (coalesce(a.attstattarget, -1) <> -1 or a.attoptions is not null
                                             or a.attacl is not null or a.attidentity <> ''))
        then 'a column has privileges, an identity or statistics settings of its own'
    when exists (select from pg_catalog.pg_index i join pg_catalog.pg_class ic on ic.oid = i.indexrelid
                 where i.indrelid = c.oid and (i.indisreplident or i.indisclustered or not i.indisvalid
                                               or ic.reltablespace <> 0)) then 'an index has settings of its own'
    when exists (select from pg_catalog.pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
                 and d.deptype in ('e', 'x')) then 'it belongs to an extension'
    end
from pg_catalog.pg_class c left join pg_catalog.pg_class t on t.oid = c.reltoastrelid where c.oid = %(oid)s::oid
"""
DEPENDENT_SQL = """
select pg_describe_object(d.classid, d.objid, d.objsubid)
from pg_catalog.pg_class c join pg_catalog.pg_type y on y.oid = c.reltype
join pg_catalog.pg_depend d on (d.refclassid = 'pg_class'::regclass and d.refobjid = c.oid)
                            or (d.refclassid = 'pg_type'::regclass and d.refobjid in (c.reltype, y.typarray))
where c.oid = %(oid)s::oid
  and not (d.classid = 'pg_class'::regclass and (d.objid = c.reltoastrelid or exists (
           select from pg_catalog.pg_index i where i.indexrelid = d.objid and i.indrelid = c.oid)))
  and not (d.classid = 'pg_constraint'::regclass and exists (
           select from pg_catalog.pg_constraint n where n.oid = d.objid and n.conrelid = c.oid
           and (n.contype <> 'f' or %(of_partition)s)))
  and not (d.classid = 'pg_trigger'::regclass and %(of_partition)s and exists (
           select from pg_catalog.pg_trigger g where g.oid = d.objid and g.tgisinternal))
  and not (d.classid = 'pg_attrdef'::regclass and exists (
           select from pg_catalog.pg_attrdef f where f.oid = d.objid and f.adrelid = c.oid))
  and not (d.classid = 'pg_type'::regclass and d.objid in (c.reltype, y.typarray))
limit 1
"""
SCHEMAS_SQL = "select to_regclass('pg_catalog.pg_publication_namespace') is not null"
PUBLISHED_SQL = """
select exists (select from pg_catalog.pg_publication_namespace p
               join pg_catalog.pg_class c on c.relnamespace = p.pnnspid where c.oid = %s::oid)
"""
SHAPE_SQL = """
select a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attcollation, a.attstorage, a.attgenerated,
       pg_get_expr(d.adbin, d.adrelid), col_description(a.attrelid, a.attnum)
from pg_catalog.pg_attribute a left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = %s::oid and a.attnum > 0 and not a.attisdropped order by a.attnum
"""
CHECKS_SQL = """
select c.conname, pg_get_constraintdef(c.oid), c.convalidated, obj_description(c.oid, 'pg_constraint')
from pg_catalog.pg_constraint c where c.conrelid = %s::oid and c.contype = 'c' order by 1
"""
METHOD_SQL = "select relam from pg_catalog.pg_class where oid = %s::oid"
PRIVILEGES_SQL = """
select case when a.grantee = 0 then null else pg_get_userbyid(a.grantee)::text end, a.privilege_type, a.is_grantable
from pg_catalog.pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a where c.oid = %s::oid
order by 1, 2, 3
"""
SEES_ALL_SQL = "select pg_has_role(current_user, 'pg_read_all_stats', 'usage')"
ANALYSED_SQL = "select exists (select from pg_catalog.pg_stats where schemaname = %s and tablename = %s)"
"""Query that finds out whether the target has statistics; if so, the new table is analysed too."""
OLDER_SQL = """
select count(*) from pg_catalog.pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and age(backend_xmin) > age(%s::text::xid)
"""


def swap_obstacle(conn: psycopg.Connection[Any], oid: int) -> str | None:
    """Return the reason why another table cannot take this table's name, or None if it can."""
    return lost_property(conn, oid) or visibility_obstacle(conn)


def lost_property(conn: psycopg.Connection[Any], oid: int, *, of_partition: bool = False) -> str | None:
    """Return a property or dependent object of the table that would be lost with it, or None if there is none.

    With `of_partition`, keys and foreign keys are not reported, because they are created on the new partition.
    """
    given = {"oid": oid, "of_partition": of_partition}
    row = conn.execute(ODD_SQL, given).fetchone()
    if row and row[0]:
        return str(row[0])
    row = conn.execute(DEPENDENT_SQL, given).fetchone()
    if row:
        return f"{row[0]} stands on it"
    published = conn.execute(SCHEMAS_SQL).fetchone() == (True,) and conn.execute(PUBLISHED_SQL, [oid]).fetchone()
    return "its schema is published" if published == (True,) else None


def visibility_obstacle(conn: psycopg.Connection[Any]) -> str | None:
    """Return the reason why other sessions' snapshots cannot be seen, or None if they can."""
    if conn.execute(SEES_ALL_SQL).fetchone() == (True,):
        return None
    return "other sessions' snapshots are not visible without the role pg_read_all_stats"


@contextlib.contextmanager
def replacement_table(
    conn: psycopg.Connection[Any],
    place: tuple[str, str],
    target: sql.Composable,
    heads: Sequence[FileColumn] | None,
) -> Iterator[sql.Identifier]:
    """Create a table like the target, or from the columns of files, and drop it on exit unless it was renamed.

    Args:
        conn: The session.
        place: Schema and name of the new table.
        target: The table to copy.
        heads: The files' columns to create it from, or None to copy `target`.
    """
    stage = sql.Identifier(*place)
    if heads is None:
        like = "including defaults including generated including constraints including storage including comments"
        conn.execute(sql.SQL("create table {} (like {} {})").format(stage, target, sql.SQL(like)))
    else:
        create(conn, stage.as_string(conn), heads)
    with dropped_at_exit(conn, stage):
        yield stage


def publish(
    conn: psycopg.Connection[Any], staged: StagedRows, name: tuple[str, str], load_request: LoadRequest
) -> LoadResult | str:
    """Rename the new table to the target's name, or return the reason why nothing was changed.

    Raises:
        MoveError: The table was to be created, but already exists.
        psycopg.Error: The server reports an error.
    """
    if has_older_snapshots(conn):
        return "a session has a snapshot from before the rows arrived"
    loaded = LoadResult(
        files=0,
        in_files=staged.rows,
        mode=load_request.mode,
        changes=MergeCounts(new=staged.rows),
        created=load_request.create,
    )
    rename = sql.SQL("alter table {} rename to {}").format(staged.stage, sql.Identifier(name[1]))
    if load_request.create:
        try:
            conn.execute(rename)
        except psycopg.errors.DuplicateTable:
            raise MoveError(
                "already exists", where=load_request.table, next_step="leave --create out, or name another table"
            ) from None
        return loaded
    if conn.execute(ANALYSED_SQL, name).fetchone() == (True,):
        conn.execute(sql.SQL("analyze {}").format(staged.stage))
    with conn.transaction():
        conn.execute(sql.SQL("lock table {} in access exclusive mode").format(staged.table))
        new = conn.execute("select to_regclass(%s)::oid", [staged.stage.as_string(conn)]).fetchone()
        reason = swap_obstacle(conn, staged.oid) or copy_privileges(
            conn, staged.oid, new[0] if new else 0, staged.stage
        )
        if reason is not None:
            return reason
        made = indexes.drop_indexes(conn, staged.oid, staged.table, staged.kind)
        row = conn.execute("select obj_description(%s::oid, 'pg_class')", [staged.oid]).fetchone()
        conn.execute(sql.SQL("drop table {}").format(staged.table))
        conn.execute(rename)
        if row and row[0] is not None:
            conn.execute(sql.SQL("comment on table {} is {}").format(staged.table, row[0]))
        return replace(loaded, made=made.recreate(conn))


def copy_privileges(
    conn: psycopg.Connection[Any], old: int, new: int, table: sql.Composable, *, but: str | None = None
) -> str | None:
    """Grant the old table's privileges on the new one, and return what still differs, or None if nothing does.

    Args:
        conn: The session.
        old: The old table's OID.
        new: The new table's OID.
        table: The new table's quoted name.
        but: Name of a check constraint on the new table to ignore.
    """
    for grantee, privilege, passes in conn.execute(PRIVILEGES_SQL, [old]).fetchall():
        who = sql.SQL("public") if grantee is None else sql.Identifier(grantee)
        option = sql.SQL(" with grant option" if passes else "")
        text = sql.SQL("grant {} on {} to {}{}")
        conn.execute(text.format(sql.SQL(privilege), table, who, option))
    for what, query in (
        ("its columns were altered during the load", SHAPE_SQL),
        ("its constraints were altered during the load", CHECKS_SQL),
        ("its access method changed", METHOD_SQL),
        ("its privileges were granted by roles other than its owner", PRIVILEGES_SQL),
    ):
        before, after = conn.execute(query, [old]).fetchall(), conn.execute(query, [new]).fetchall()
        if before != [row for row in after if but is None or row[0] != but]:
            return what
    return None


def has_older_snapshots(conn: psycopg.Connection[Any]) -> bool:
    """Return True if a session still has a snapshot from before a worker's last commit, so that it sees only some rows.

    Waits up to `SNAPSHOTS_S` seconds for such sessions to end.
    """
    with conn.transaction():
        row = conn.execute("select (pg_catalog.txid_current() % 4294967296)::text").fetchone()
    until = time.monotonic() + SNAPSHOTS_S
    while True:
        older = conn.execute(OLDER_SQL, [row[0] if row else "0"]).fetchone()
        if older is None or not older[0]:
            return False
        if time.monotonic() >= until:
            return True
        time.sleep(LOOK_S)
