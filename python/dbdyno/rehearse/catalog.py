"""Catalog of a database, read from both sides to explain why a statement behaves differently."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString

import psycopg

from dbdyno.bench.postgres.server import Postgres


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or materialised view: rows and pages as the planner knows them, pages on disk, and statistics.

    `rows` is an estimate, and -1 where the table was never analysed. `analyzed_columns` is None where this role may not
    see the statistics.
    """

    rows: float
    pages: int
    disk_pages: int
    analyzed_columns: int | None


@dataclass(frozen=True, slots=True)
class Catalog:
    """Catalog of a database; names have their schema unless it is public, and keep their case.

    Attributes:
        version: Number of the server's version, such as 150004.
        relations: Tables and materialised views.
        indexes: Definition of each valid index.
        statistics: Definition of each extended statistics object, by name.
        statistics_tables: Table of each extended statistics object.
        targets: Statistics target of each column for which one is set, by `table.column`.
        functions: Definition of each user-defined function, by name.
        views: Definition of each view.
        settings: Values of the server's settings for this role and database.
        extensions: Version of each installed extension.
        available: Version of each extension that CREATE EXTENSION would install.
        collation: Collation of the database, with its provider and locale where they are not the system's.
        collation_versions: Version of each collation that a column uses, as its library reports it; the database's is
            under the key ''.
        columns: Type and collation of each column, by `table.column`.
        sequences: For each column whose sequence is behind the column's highest value: both values, in words.
        keywords: Words that cannot be used as a name without quotes.
        unread: What could not be read, in words.
    """

    version: int
    relations: Mapping[str, Relation] = field(default_factory=dict)
    indexes: Mapping[str, str] = field(default_factory=dict)
    statistics: Mapping[str, str] = field(default_factory=dict)
    statistics_tables: Mapping[str, str] = field(default_factory=dict)
    targets: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    extensions: Mapping[str, str] = field(default_factory=dict)
    available: Mapping[str, str] = field(default_factory=dict)
    collation: str = ""
    collation_versions: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    sequences: Mapping[str, str] = field(default_factory=dict)
    keywords: frozenset[str] = frozenset()
    unread: tuple[str, ...] = ()

    @property
    def major(self) -> str:
        """Return the major version: `18`."""
        return str(self.version // 10000)


_NAME: LiteralString = "case when n.nspname = 'public' then c.relname else n.nspname || '.' || c.relname end"
_OURS: LiteralString = "n.nspname !~ '^pg_(catalog|toast|temp)' and n.nspname <> 'information_schema'"
_QUERIES: dict[str, LiteralString] = {
    "relations": (
        f"select {_NAME}, c.reltuples::float8, c.relpages, "
        "(pg_relation_size(c.oid) / current_setting('block_size')::int)::int,"
        " case when has_table_privilege(c.oid, 'select') and not row_security_active(c.oid)"
        " then coalesce(s.columns, 0) end"
        " from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " left join (select schemaname, tablename, count(distinct attname)::int as columns from pg_stats"
        " group by 1, 2) s on s.schemaname = n.nspname and s.tablename = c.relname"
        f" where c.relkind in ('r', 'm', 'p') and {_OURS}"
    ),
    "indexes": (
        f"select {_NAME}, pg_get_indexdef(i.indexrelid) from pg_index i join pg_class c on c.oid = i.indexrelid"
        f" join pg_namespace n on n.oid = c.relnamespace where i.indisvalid and {_OURS}"
    ),
    "statistics": (
        "select case when o.nspname = 'public' then s.stxname else o.nspname || '.' || s.stxname end,"
        f" pg_get_statisticsobjdef(s.oid), {_NAME}"
        " from pg_statistic_ext s join pg_namespace o on o.oid = s.stxnamespace"
        f" join pg_class c on c.oid = s.stxrelid join pg_namespace n on n.oid = c.relnamespace where {_OURS}"
    ),
    "targets": (
        f"select {_NAME} || '.' || a.attname, a.attstattarget::text from pg_attribute a join pg_class c"
        " on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace"
        f" where a.attnum > 0 and a.attstattarget >= 0 and c.relkind in ('r', 'm', 'p') and {_OURS}"
    ),
    "functions": (
        "select case when n.nspname = 'public' then p.proname else n.nspname || '.' || p.proname end,"
        " string_agg(pg_get_functiondef(p.oid), E'\\n' order by p.oid::regprocedure::text)"
        f" from pg_proc p join pg_namespace n on n.oid = p.pronamespace where p.prokind in ('f', 'p') and {_OURS}"
        " and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid"
        " and d.deptype = 'e') group by 1"
    ),
    "views": (
        f"select {_NAME}, pg_get_viewdef(c.oid) from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        f" where c.relkind in ('v', 'm') and {_OURS}"
    ),
    "settings": "select name, coalesce(setting, '') || coalesce(' ' || unit, '') from pg_settings",
    "extensions": "select extname, extversion from pg_extension",
    "available": "select name, default_version from pg_available_extensions",
    "columns": (
        f"select {_NAME} || '.' || a.attname, format_type(a.atttypid, a.atttypmod)"
        " || coalesce(' collate ' || nullif(l.collname, 'default'), '')"
        " from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace"
        " left join pg_collation l on l.oid = a.attcollation"
        f" where a.attnum > 0 and not a.attisdropped and c.relkind in ('r', 'm', 'p', 'v', 'f') and {_OURS}"
    ),
    "versions": (
        "select l.collname, pg_collation_actual_version(l.oid) from pg_collation l where l.collname <> 'default'"
        " and pg_collation_actual_version(l.oid) is not null and exists (select from pg_attribute a"
        " where a.attcollation = l.oid and a.attnum > 0 and a.attrelid >= 16384)"
    ),
    "keywords": "select word, '' from pg_get_keywords() where catcode in ('R', 'T')",
}
_SEQUENCES: LiteralString = (
    "select quote_ident(n.nspname) || '.' || quote_ident(c.relname), quote_ident(a.attname),"
    f" {_NAME} || '.' || a.attname, s.oid::regclass::text, coalesce(pg_sequence_last_value(s.oid),"
    " q.seqstart::numeric - q.seqincrement), q.seqincrement < 0 from pg_sequence q"
    " join pg_depend d on d.objid = q.seqrelid join pg_class s on s.oid = d.objid and s.relkind = 'S'"
    " join pg_class c on c.oid = d.refobjid join pg_attribute a on a.attrelid = c.oid and a.attnum = d.refobjsubid"
    " join pg_namespace n on n.oid = c.relnamespace where d.deptype in ('a', 'i')"
    " and d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass"
    " and a.atttypid in ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)"
)
_COLLATION: LiteralString = (
    "select datcollate || ' ' || datctype || case to_jsonb(d) ->> 'datlocprovider' when 'i' then ', provider icu'"
    " when 'b' then ', provider builtin' else '' end"
    " || coalesce(', locale ' || coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale'), '')"
    " from pg_database d where datname = current_database()"
)
_DATABASE_VERSION_SINCE = 150_000
_DATABASE_VERSION: LiteralString = (
    "select '', pg_database_collation_actual_version(oid) from pg_database where datname = current_database()"
)
_LIBRARY_VERSION: LiteralString = (
    "select '', max(pg_collation_actual_version(l.oid)) from pg_collation l join pg_database d"
    " on l.collprovider = 'c' and l.collcollate = d.datcollate where d.datname = current_database()"
)
_UNREAD = {
    "relations": "sizes and statistics of tables",
    "statistics": "extended statistics",
    "targets": "statistics targets",
    "available": "extensions that could be created",
    "versions": "versions of collations",
}
"""Descriptions of what a query reads, for queries whose name does not say it."""
_PAIRS = ("indexes", "statistics", "targets", "functions", "views", "settings", "extensions", "available", "columns")


def read_catalog(server: Postgres, settings: Sequence[str] = ()) -> Catalog:
    """Read the catalog of a server's database; what the role may not read is left empty and listed in `unread`.

    Args:
        server: The server.
        settings: Statements that are run first, such as a setting under test.

    Raises:
        TargetError: The server does not answer.
    """
    unread: list[str] = []
    with contextlib.closing(server.connect(statement_timeout_ms=60_000, read_only=True)) as conn:
        for setting in settings:
            with contextlib.suppress(psycopg.Error):
                conn.execute(setting.encode())
        rows = {"settings": _rows(conn, "settings", _QUERIES["settings"], unread)}
        # Definitions are written with the schemas that the search path lacks: it must be the same on both sides.
        _rows(conn, "search_path", "select set_config('search_path', 'pg_catalog', false)", unread)
        rows |= {name: _rows(conn, name, sql, unread) for name, sql in _QUERIES.items() if name != "settings"}
        collation = _rows(conn, "collation", _COLLATION, unread)
        version = int(conn.info.server_version)
        own = _DATABASE_VERSION if version >= _DATABASE_VERSION_SINCE else _LIBRARY_VERSION
        versions = [*rows["versions"], *_rows(conn, "versions", own, unread)]
        sequences = _sequences(conn, unread)
    pairs = {name: {str(row[0]): str(row[1]) for row in rows[name]} for name in _PAIRS}
    return Catalog(
        version,
        relations={str(row[0]): Relation(*row[1:]) for row in rows["relations"]},
        statistics_tables={str(row[0]): str(row[2]) for row in rows["statistics"]},
        collation=str(collation[0][0]) if collation else "",
        collation_versions={str(name): str(found) for name, found in versions if found is not None},
        sequences=sequences,
        keywords=frozenset(str(row[0]) for row in rows["keywords"]),
        unread=tuple(dict.fromkeys(unread)),
        **pairs,
    )


def _rows(conn: Any, name: str, sql: LiteralString, unread: list[str]) -> list[tuple[Any, ...]]:
    """Return the rows of a query; if the server refuses it, add its subject to `unread`."""
    try:
        return list(conn.execute(sql).fetchall())
    except psycopg.Error:
        unread.append(_UNREAD.get(name, name))
        return []


def _sequences(conn: Any, unread: list[str]) -> dict[str, str]:
    """Describe the sequences that are behind the highest value of their column, by `table.column`."""
    from psycopg import sql

    found = {}
    for table, column, name, sequence, last, is_descending in _rows(conn, "sequences", _SEQUENCES, unread):
        # Both names come quoted from the server's quote_ident.
        furthest = sql.SQL("min" if is_descending else "max")
        asked = sql.SQL("select {}({}) from {}").format(furthest, sql.SQL(column), sql.SQL(table))
        try:
            row = conn.execute(asked).fetchone()
        except psycopg.Error:
            continue
        value = row[0] if row else None
        if value is not None and (value < last if is_descending else value > last):
            word = "smallest" if is_descending else "largest"
            found[str(name)] = f"{sequence} is at {last}, the {word} {column} is {value}"
    return found
