"""Contents of the source: one snapshot of the whole database with all tables locked, and lists of its objects.

Every relation that holds rows itself is a table here: partitions and the tables of an inheritance tree are listed one
by one, so that each row arrives in the table that it came from. Generated columns are left out. From an
extension's tables, only the rows that the extension marks as user data are moved, as in pg_dump.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.errors import MoveError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres.columns import TYPES_SQL, DescribedColumn, typed_columns
from dbdyno.move.engines.postgres.source import (
    REWRITTEN_SQL,
    Snapshot,
    Table,
    begin_snapshot,
    session_settings,
)
from dbdyno.move.reading.splits import Relation

GENERATED_SINCE = 120000
SEQUENCES_AT_ONCE = 200
USERS = "n.nspname !~ '^pg_' and n.nspname <> 'information_schema'"
CONFIGURED_SQL = """
select unnest(extconfig)::bigint as oid, unnest(extcondition) as condition
from pg_catalog.pg_extension
"""
TABLES_SQL = f"""
with configured as ({CONFIGURED_SQL}),
member as (select objid from pg_catalog.pg_depend where deptype = 'e' and classid = 'pg_catalog.pg_class'::regclass)
select n.nspname::text, c.relname::text, c.oid::bigint, coalesce(pg_relation_filenode(c.oid), 0)::bigint,
       pg_relation_size(c.oid) / current_setting('block_size')::int, pg_table_size(c.oid), k.condition
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
left join configured k on k.oid = c.oid
where c.relkind = 'r' and c.relpersistence <> 't' and {USERS}
  and (k.oid is not null or c.oid not in (select objid from member))
order by n.nspname, c.relname
"""  # noqa: S608 (the parts are constants)
LOCKED_SQL = f"""
select n.nspname::text, c.relname::text, c.oid::bigint from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and c.relpersistence <> 't' and {USERS} order by c.oid
"""  # noqa: S608
COLUMNS_SQL = """
select a.attrelid::bigint, a.attname::text, a.atttypid::bigint, a.atttypmod, format_type(a.atttypid, a.atttypmod)
from pg_catalog.pg_attribute a
where a.attrelid = any(%s::oid[]) and a.attnum > 0 and not a.attisdropped{} order by a.attrelid, a.attnum
"""
INDEXES_SQL = f"""
select n.nspname::text, c.relname::text, t.relname::text, pg_relation_size(c.oid)
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_index i on i.indexrelid = c.oid join pg_catalog.pg_class t on t.oid = i.indrelid
where c.relkind = 'i' and c.relpersistence <> 't' and {USERS}
  and not exists (select from pg_catalog.pg_depend d where d.objid = t.oid and d.deptype = 'e'
                  and d.classid = 'pg_catalog.pg_class'::regclass)
order by n.nspname, c.relname
"""  # noqa: S608
SEQUENCES_SQL = f"""
with configured as ({CONFIGURED_SQL})
select n.nspname::text, c.relname::text
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'S' and c.relpersistence <> 't' and {USERS}
  and (c.oid in (select oid from configured) or not exists (select from pg_catalog.pg_depend d where d.objid = c.oid
       and d.deptype = 'e' and d.classid = 'pg_catalog.pg_class'::regclass))
order by n.nspname, c.relname
"""  # noqa: S608
FACTS_SQL = """
select current_setting('server_version_num')::int, pg_encoding_to_char(d.encoding), d.datcollate::text,
       d.datctype::text, (select count(*) from pg_catalog.pg_largeobject_metadata),
       to_regnamespace('public') is not null
from pg_catalog.pg_database d where d.datname = current_database()
"""


HIDDEN_SQL = f"""
select c.oid::regclass::text from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'r' and {USERS} and row_security_active(c.oid) order by 1 limit 1
"""  # noqa: S608
ROLES_SQL = """
select distinct r.rolname::text from pg_catalog.pg_shdepend d join pg_catalog.pg_roles r on r.oid = d.refobjid
where d.refclassid = 'pg_catalog.pg_authid'::regclass
  and d.dbid = (select oid from pg_catalog.pg_database where datname = current_database()) order by 1
"""
EXTENSIONS_SQL = "select extname::text, extversion from pg_catalog.pg_extension order by 1"
OWN_SQL = """
select format('ALTER DATABASE ... %sSET %s', case when s.setrole <> 0 then
                  'for role ' || pg_get_userbyid(s.setrole) || ' ' else '' end, setting)
from pg_catalog.pg_db_role_setting s, unnest(s.setconfig) setting
where s.setdatabase = (select oid from pg_catalog.pg_database where datname = current_database())
union all select 'the comment on the database' from pg_catalog.pg_database d
where datname = current_database() and shobj_description(d.oid, 'pg_database') is not null
union all select 'privileges on the database' from pg_catalog.pg_database
where datname = current_database() and datacl is not null
"""
"""Query for the properties of the database itself, which are not moved."""


@dataclass(frozen=True)
class Index:
    """An index of the source, with its size."""

    schema: str
    name: str
    table: str
    bytes: int


@dataclass(frozen=True)
class Sequence:
    """A sequence of the source, with its value."""

    schema: str
    name: str
    value: int
    called: bool


@dataclass(frozen=True)
class Facts:
    """Properties of a database, apart from its content."""

    version: int
    encoding: str
    collate: str
    ctype: str
    large_objects: int
    has_public: bool

    @property
    def major(self) -> int:
        """Return the major version of the server."""
        return self.version // 10000


@dataclass(frozen=True)
class Inventory:
    """Contents of a database that are not in pg_dump's archive."""

    facts: Facts
    tables: tuple[Table, ...]
    indexes: tuple[Index, ...]
    sequences: tuple[Sequence, ...]
    roles: tuple[str, ...]
    """Roles that own an object or have privileges on one."""
    extensions: dict[str, str]
    """Versions of extensions by name."""
    own: tuple[str, ...]
    """Settings and properties of the database itself, as text."""
    masks: tuple[str, ...] = ()
    """Masked columns with their method, as the user wrote them."""
    mask_notes: tuple[str, ...] = ()
    """Objects that may fail to arrive because of the masks, as sentences."""

    def sizes(self) -> JsonObject:
        """Return the inventory without its tables as JSON, for the plan."""
        return {
            "facts": asdict(self.facts),
            "indexes": [asdict(one) for one in self.indexes],
            "sequences": [asdict(one) for one in self.sequences],
            "roles": list(self.roles),
            "extensions": self.extensions,
            "own": list(self.own),
            "masks": list(self.masks),
        }


def take_inventory(source: Postgres, job: str, held: str | None = None) -> tuple[Snapshot, Inventory]:
    """Lock all tables of a database, take a snapshot, and read the lists of objects.

    Args:
        source: The server and its database.
        job: The job's id.
        held: The snapshot exported by another session, or None to take a new one.

    Raises:
        MoveError: The database cannot be read.
        SnapshotLostError: No session holds the snapshot `held` any more.
    """
    found: list[Inventory] = []

    def begin(snapshot: Snapshot) -> bool:
        if not _begin(snapshot, held):
            return False
        found.append(_inventory(snapshot.conn))
        snapshot.tables = list(found[0].tables)
        return True

    return begin_snapshot(source, job, held, begin, "tables were made, dropped or truncated"), found[0]


def _begin(snapshot: Snapshot, held: str | None) -> bool:
    """Begin the transaction of the snapshot; return False if its tables are not the ones that were locked."""
    conn = snapshot.conn
    before = conn.execute(LOCKED_SQL).fetchall()
    conn.execute("begin isolation level repeatable read read only")
    if held is not None:
        conn.execute(sql.SQL("set transaction snapshot {}").format(sql.Literal(held)))
        # Objects created after the snapshot are not moved.
        before = conn.execute(LOCKED_SQL).fetchall()
    if before:
        names = sql.SQL(", ").join(sql.SQL("only {}").format(sql.Identifier(*row[:2])) for row in before)
        try:
            conn.execute(sql.SQL("lock table {} in access share mode").format(names))
        except psycopg.errors.UndefinedTable:
            return False
    row = conn.execute("select pg_export_snapshot(), now()::text").fetchone()
    snapshot.id, snapshot.taken_at = row or ("", "")
    conn.execute(session_settings(conn, idle_only=True))
    conn.execute("select set_config('search_path', '', true)")
    same = conn.execute(LOCKED_SQL).fetchall() == before
    return same and conn.execute(REWRITTEN_SQL).fetchone() is None


def facts_of(conn: psycopg.Connection[Any]) -> Facts:
    """Return the properties of the session's database."""
    row = conn.execute(FACTS_SQL).fetchone()
    assert row is not None, "a session is in a database"
    return Facts(*row)


def _refuse_hidden(conn: psycopg.Connection[Any]) -> None:
    """Raise an error if row-level security hides rows from this role."""
    row = conn.execute(HIDDEN_SQL).fetchone()
    if row is not None:
        raise MoveError(
            f"row-level security hides rows of {row[0]} from the role {conn.info.user}",
            where=f"database {conn.info.dbname}",
            next_step="connect as the owner of the table, a superuser, or a role with BYPASSRLS",
        )


def _inventory(conn: psycopg.Connection[Any]) -> Inventory:
    _refuse_hidden(conn)
    roles = tuple(row[0] for row in conn.execute(ROLES_SQL))
    own = tuple(row[0] for row in conn.execute(OWN_SQL))
    return Inventory(
        facts_of(conn), _tables(conn), _indexes(conn), tuple(_sequences(conn)), roles, extensions_of(conn), own
    )


def extensions_of(conn: psycopg.Connection[Any]) -> dict[str, str]:
    """Return the versions of a database's extensions by name."""
    return dict(conn.execute(EXTENSIONS_SQL).fetchall())


def _tables(conn: psycopg.Connection[Any]) -> tuple[Table, ...]:
    found = conn.execute(TABLES_SQL).fetchall()
    made = " and a.attgenerated = ''" if conn.info.server_version >= GENERATED_SINCE else ""
    described: dict[int, list[DescribedColumn]] = defaultdict(list)
    for oid, *column in conn.execute(COLUMNS_SQL.format(made).encode(), [[row[2] for row in found]]):
        described[oid].append(DescribedColumn(*column))
    oids = {one.oid for columns in described.values() for one in columns}
    types = conn.execute(TYPES_SQL, [list(oids)]).fetchall()
    tables = []
    for schema, name, oid, file, blocks, size, condition in found:
        relation = Relation(schema, name, oid, file, blocks, size)
        columns = tuple(typed_columns(described[oid], types))
        where = (condition or "").strip()
        # The extension's author wrote the condition with the keyword WHERE.
        where = where[len("where") :].strip() if where.lower().startswith("where") else where
        kind = "table" if condition is None else "table of an extension"
        tables.append(Table(schema, name, kind, columns, (relation,), where or None))
    return tuple(tables)


def _indexes(conn: psycopg.Connection[Any]) -> tuple[Index, ...]:
    return tuple(Index(*row) for row in conn.execute(INDEXES_SQL))


def _sequences(conn: psycopg.Connection[Any]) -> list[Sequence]:
    names = conn.execute(SEQUENCES_SQL).fetchall()
    found = []
    for place in range(0, len(names), SEQUENCES_AT_ONCE):
        part = names[place : place + SEQUENCES_AT_ONCE]
        one = sql.SQL("select {} as place, last_value, is_called from {}")
        each = [one.format(number, sql.Identifier(*name)) for number, name in enumerate(part)]
        for number, value, called in conn.execute(sql.SQL(" union all ").join(each) + sql.SQL(" order by place")):
            schema, name = part[number]
            found.append(Sequence(schema, name, value, called))
    return found
