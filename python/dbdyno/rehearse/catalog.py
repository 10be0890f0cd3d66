"""What a database is made of, as far as it explains why a statement behaves differently: read from both sides."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, LiteralString

import psycopg

from dbdyno.bench.postgres.server import Postgres


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, materialised view or index: rows and pages as the planner knows them, pages on disk, and statistics."""

    rows: float
    pages: int
    disk_pages: int
    analyzed_columns: int


@dataclass(frozen=True, slots=True)
class Catalog:
    """What a database is made of; names have their schema unless it is public.

    Attributes:
        version: Number of the server's version, such as 150004.
        relations: Tables and materialised views.
        indexes: Definition of each valid index.
        index_tables: Table of each index.
        statistics: Definition of each extended statistics object, by name.
        targets: Statistics target of each column that has one of its own, by `table.column`.
        functions: Definition of each function of the users, by name.
        views: Definition of each view.
        settings: Values of the server's settings for this role and database.
        extensions: Versions of the extensions.
        available: Versions of the extensions that the server would create.
        collation: Collation of the database and its version.
        columns: Type and collation of each column, by `table.column`.
        sequences: For each column that its sequence has fallen behind: where both are, in words.
        keywords: Words that cannot be used as a name without quotes.
    """

    version: int
    relations: Mapping[str, Relation] = field(default_factory=dict)
    indexes: Mapping[str, str] = field(default_factory=dict)
    index_tables: Mapping[str, str] = field(default_factory=dict)
    statistics: Mapping[str, str] = field(default_factory=dict)
    targets: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    extensions: Mapping[str, str] = field(default_factory=dict)
    available: Mapping[str, str] = field(default_factory=dict)
    collation: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    sequences: Mapping[str, str] = field(default_factory=dict)
    keywords: frozenset[str] = frozenset()

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
        " (select count(*) from pg_statistic s where s.starelid = c.oid)::int"
        f" from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'm', 'p') and {_OURS}"
    ),
    "indexes": (
        f"select {_NAME}, pg_get_indexdef(i.indexrelid), t.relname from pg_index i join pg_class c"
        " on c.oid = i.indexrelid join pg_class t on t.oid = i.indrelid"
        f" join pg_namespace n on n.oid = c.relnamespace where i.indisvalid and {_OURS}"
    ),
    "statistics": (
        "select s.stxname, pg_get_statisticsobjdef(s.oid) from pg_statistic_ext s"
        f" join pg_class c on c.oid = s.stxrelid join pg_namespace n on n.oid = c.relnamespace where {_OURS}"
    ),
    "targets": (
        f"select {_NAME} || '.' || a.attname, a.attstattarget::text from pg_attribute a join pg_class c"
        " on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace"
        f" where a.attnum > 0 and a.attstattarget >= 0 and c.relkind in ('r', 'm', 'p') and {_OURS}"
    ),
    "functions": (
        "select p.proname, string_agg(pg_get_functiondef(p.oid), E'\\n' order by p.oid::regprocedure::text)"
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
    "keywords": "select word, '' from pg_get_keywords() where catcode in ('R', 'T')",
}
_SEQUENCES: LiteralString = (
    "select quote_ident(n.nspname) || '.' || quote_ident(c.relname), quote_ident(a.attname), c.relname || '.' ||"
    " a.attname, s.oid::regclass::text, coalesce(pg_sequence_last_value(s.oid),"
    " q.seqstart::numeric - q.seqincrement), q.seqincrement < 0 from pg_sequence q"
    " join pg_depend d on d.objid = q.seqrelid join pg_class s on s.oid = d.objid and s.relkind = 'S'"
    " join pg_class c on c.oid = d.refobjid join pg_attribute a on a.attrelid = c.oid and a.attnum = d.refobjsubid"
    " join pg_namespace n on n.oid = c.relnamespace where d.deptype in ('a', 'i')"
    " and d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass"
    " and a.atttypid in ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)"
)
_COLLATION: LiteralString = "select datcollate || ' ' || datctype from pg_database where datname = current_database()"


def read_catalog(server: Postgres) -> Catalog:
    """Read what the database of a server is made of; what this role may not read is empty.

    Raises:
        TargetError: The server does not answer.
    """
    with contextlib.closing(server.connect(statement_timeout_ms=60_000, read_only=True)) as conn:
        rows = {name: _rows(conn, sql) for name, sql in _QUERIES.items()}
        collation = _rows(conn, _COLLATION)
        version = int(conn.info.server_version)
        sequences = _sequences(conn)
    pairs = {name: {str(row[0]): str(row[1]) for row in found} for name, found in rows.items() if name in _PAIRS}
    return Catalog(
        version,
        relations={str(row[0]): Relation(*row[1:]) for row in rows["relations"]},
        index_tables={str(row[0]): str(row[2]) for row in rows["indexes"]},
        collation=str(collation[0][0]) if collation else "",
        sequences=sequences,
        keywords=frozenset(str(row[0]) for row in rows["keywords"]),
        **pairs,
    )


_PAIRS = ("indexes", "statistics", "targets", "functions", "views", "settings", "extensions", "available", "columns")


def _rows(conn: Any, sql: LiteralString) -> list[tuple[Any, ...]]:
    try:
        return list(conn.execute(sql).fetchall())
    except psycopg.Error:
        return []


def _sequences(conn: Any) -> dict[str, str]:
    """Return in words the sequences that are behind their column of whole numbers, by `table.column`."""
    from psycopg import sql

    found = {}
    for table, column, name, sequence, last, is_descending in _rows(conn, _SEQUENCES):
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
