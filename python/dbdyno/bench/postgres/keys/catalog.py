"""Tables, views and key spaces of a database, as its catalog describes them.

A key space is a set of columns that hold the same keys: a column whose values are generated or unique, the foreign keys
that reference it, and the same column of parent tables and partitions. Other columns are not keys.

Limits: a column that is unique only together with others is a key only if the server generates its values, because its
values alone do not identify a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, LiteralString

from dbdyno.bench.postgres.keys.origins import Origin, Output

if TYPE_CHECKING:
    import psycopg

_KINDS = {"int2": "integer", "int4": "integer", "int8": "integer", "uuid": "uuid"}
_COLUMNS: LiteralString = """
select c.oid::bigint, n.nspname, c.relname, a.attname, b.typname,
       a.attidentity <> '' or coalesce(pg_get_expr(d.adbin, d.adrelid) ~* '(nextval|uuid)', false)
       or exists (select from pg_index i where i.indrelid = c.oid and i.indisunique and i.indpred is null
                  and i.indnkeyatts = 1 and i.indkey[0] = a.attnum)
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
join pg_type t on t.oid = a.atttypid
join pg_type b on b.oid = coalesce(nullif(t.typbasetype, 0), t.oid)
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relkind in ('r', 'p', 'f', 'v', 'm') and n.nspname not in ('pg_catalog', 'information_schema')
and n.nspname not like 'pg\\_t%' escape '\\'
order by c.oid, a.attnum
"""
_SAME: LiteralString = """
select f.conrelid::bigint, a.attname, f.confrelid::bigint, b.attname, true
from pg_constraint f
cross join lateral unnest(f.conkey, f.confkey) as u(of, by)
join pg_attribute a on a.attrelid = f.conrelid and a.attnum = u.of
join pg_attribute b on b.attrelid = f.confrelid and b.attnum = u.by
where f.contype = 'f'
union all
select i.inhrelid::bigint, a.attname, i.inhparent::bigint, a.attname, false
from pg_inherits i
join pg_attribute a on a.attrelid = i.inhparent and a.attnum > 0 and not a.attisdropped
"""
_VIEWS: LiteralString = """
select c.oid::bigint, pg_get_viewdef(c.oid) from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('v', 'm') and n.nspname not in ('pg_catalog', 'information_schema')
"""

_VOLATILE: LiteralString = """
select distinct p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where p.provolatile = 'v' and n.nspname not in ('pg_catalog', 'information_schema')
"""
_LARGE_OBJECTS = ("lo_create", "lo_creat", "lo_from_bytea", "lo_import", "lo_put", "lo_unlink", "lowrite")
_WRITERS = frozenset(("setval", *_LARGE_OBJECTS))
"""Built-in functions of the server that change data."""

ColumnKey = tuple[int, str]
"""A column: its relation, and its name."""


@dataclass(frozen=True)
class Relation:
    """A table or view: its columns in order, and the query of a view."""

    oid: int
    columns: tuple[str, ...]
    definition: str | None = None


@dataclass
class Catalog:
    """Relations by schema and name, and the key space of each key column.

    `is_certain` is False if sessions change their search path; a name that exists in several schemas then counts as
    unknown.
    """

    relations: dict[tuple[str, str], Relation]
    spaces: dict[ColumnKey, int]
    names: list[str]
    kinds: list[str]
    keys: frozenset[ColumnKey] = frozenset()
    """Columns that are keys themselves, not foreign keys."""
    path: tuple[str, ...] = ()
    is_certain: bool = True
    writers: frozenset[str] = _WRITERS
    """Names of functions that change data, or may do so."""
    views: dict[int, list[Output]] = field(default_factory=dict)
    """Columns of the views whose queries have been read."""
    _schemas: dict[str, list[str]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Index the schemas by the names of their relations."""
        for schema, name in self.relations:
            self._schemas.setdefault(name, []).append(schema)

    def find(self, schema: str | None, name: str) -> Relation | None:
        """Return the relation that a statement names, or None if it is unknown or ambiguous."""
        if schema is not None:
            return self.relations.get((schema, name))
        schemas = self._schemas.get(name, [])
        if len(schemas) == 1:
            return self.relations[schemas[0], name]
        first = next((one for one in self.path if one in schemas), None)
        return self.relations[first, name] if first is not None and self.is_certain else None

    def origin(self, relation: Relation, column: str) -> Origin:
        """Return the origin of values that come from this column of a table."""
        named = (relation.oid, column)
        space = self.spaces.get(named)
        own = frozenset({space}) if space is not None and named in self.keys else frozenset[int]()
        return Origin(frozenset({space}), own)


def read_catalog(conn: psycopg.Connection[Any]) -> Catalog:
    """Read the relations and keys of the connected database."""
    views = dict(conn.execute(_VIEWS).fetchall())
    found: dict[tuple[str, str], tuple[int, list[str]]] = {}
    names: dict[ColumnKey, str] = {}
    kinds: dict[ColumnKey, str] = {}
    keys: list[ColumnKey] = []
    for oid, schema, table, column, type_name, is_key in conn.execute(_COLUMNS).fetchall():
        found.setdefault((schema, table), (oid, []))[1].append(column)
        names[oid, column] = f"{schema}.{table}.{column}"
        kinds[oid, column] = _KINDS.get(type_name, "other")
        if is_key and oid not in views:
            keys.append((oid, column))
    same = [((one, of), (other, by), is_foreign) for one, of, other, by, is_foreign in conn.execute(_SAME).fetchall()]
    spaces, firsts = key_spaces(keys, [(one, other) for one, other, _ in same])
    foreign = {one for one, _, is_foreign in same if is_foreign}
    row = conn.execute("select current_schemas(true)").fetchone()
    volatile = [str(name) for (name,) in conn.execute(_VOLATILE).fetchall()]
    return Catalog(
        relations={where: Relation(oid, tuple(own), views.get(oid)) for where, (oid, own) in found.items()},
        spaces=spaces,
        names=[names[first] for first in firsts],
        kinds=[kinds[first] for first in firsts],
        keys=frozenset(keys) - foreign,
        path=tuple(row[0]) if row else (),
        writers=_WRITERS.union(volatile),
    )


def key_spaces(
    keys: Sequence[ColumnKey], same: Iterable[tuple[ColumnKey, ColumnKey]]
) -> tuple[dict[ColumnKey, int], list[ColumnKey]]:
    """Return the key space of each column that is a key or refers to one, and the first key of each space."""
    over: dict[ColumnKey, ColumnKey] = {}

    def top(column_key: ColumnKey) -> ColumnKey:
        while (above := over.get(column_key, column_key)) != column_key:
            column_key = above
        return column_key

    for one, other in same:
        if (low := top(one)) != (high := top(other)):
            over[low] = high
    numbers: dict[ColumnKey, int] = {}
    firsts: list[ColumnKey] = []
    for key in keys:
        if (root := top(key)) not in numbers:
            numbers[root] = len(firsts)
            firsts.append(key)
    columns = {*keys, *over, *over.values()}
    return {column: numbers[root] for column in columns if (root := top(column)) in numbers}, firsts
