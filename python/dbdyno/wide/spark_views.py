"""SQL tables of the map as Spark SELECTs over what the Cassandra connector reads; contacts no Spark session.

A child table has the rows with clustering columns, a parent one row per partition, and an element table what `explode`
makes of a collection. Values are those of `decode.py`, or an error; guards catch what the connector changes silently:

- it makes every decimal a decimal(38,18), so the value is checked against the type that the map names;
- it reads instants before the Gregorian calendar (1582) as Julian ones, so they are refused;
- it leaves out IS NOT NULL on a key, although a partition with only static columns has no clustering columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dbdyno.base.errors import WideError
from dbdyno.wide.catalog import CLUSTERING, PARTITION, STATIC, WideColumn, WideTable
from dbdyno.wide.mapping import ELEMENT, MappedColumn, Relation, element_columns
from dbdyno.wide.pushdown import is_distinct
from dbdyno.wide.types import Kind

INET = "_inet"
"""Name of a function that normalises IP addresses, because the connector writes no `::`."""
MARK = "dbdyno: "
"""Prefix of a guard's error message."""
GREGORIAN = "1582-10-15"
_ONE, _AT, _VALUE, _ENTRY = "_dbdyno", "_dbdyno_at", "_dbdyno_value", "_dbdyno_entry"
_TYPES = {"varchar": "string", "integer": "int", "blob": "binary"}
_WHOLE = {"tinyint", "smallint", "int", "bigint", "counter", "varint"}
_WHOLE_SQL = {"tinyint", "smallint", "integer", "bigint"}


@dataclass(frozen=True)
class _Value:
    """Spark expression of a column, and a guard condition that must hold for the value to be correct."""

    sql: str
    guard: str = ""


def view(relation: Relation, table: WideTable, columns: Sequence[MappedColumn], source: str) -> str:
    """Return the SELECT of an SQL table with only these columns.

    Raises:
        WideError: A type cannot be read through Spark.
    """
    made = [(one, _value(relation, table, one)) for one in columns]
    chosen = ", ".join(f"{value.sql} as {quote_spark(one.name)}" for one, value in made)
    guards = [value.guard for _, value in made if value.guard]
    place, more = _place(relation, table, columns, source)
    where = " and ".join([*more, *guards])
    return f"select {chosen} from {place}" + (f" where {where}" if where else "")  # noqa: S608 (quoted names)


def _place(relation: Relation, table: WideTable, columns: Sequence[MappedColumn], source: str) -> tuple[str, list[str]]:
    """Return the FROM clause and the conditions that yield the SQL table's rows."""
    place = source
    if is_distinct(relation, table):
        place = f"({_group_query(relation, table, columns, source)})"
    more = []
    first = table.columns_with_roles(CLUSTERING)[:1]
    if first and not is_distinct(relation, table):
        # The connector assumes that `key is not null` holds; it cannot see through a cast.
        more.append(f"cast({quote_spark(first[0].name)} as string) is not null")
    if relation.rows == ELEMENT:
        kind, name = _element(relation, table).kind, quote_spark(relation.element)
        if kind.name == "udt":
            more.append(f"{name} is not null")
        elif kind.name == "list":
            place += f" lateral view posexplode({name}) {_ONE} as {_AT}, {_VALUE}"
        elif kind.name == "set":
            place += f" lateral view explode({name}) {_ONE} as {_VALUE}"
        else:
            entries = name if is_distinct(relation, table) else f"map_entries({name})"
            place += f" lateral view explode({entries}) {_ONE} as {_ENTRY}"
    return place, more


def _group_query(relation: Relation, table: WideTable, columns: Sequence[MappedColumn], source: str) -> str:
    """Return a query with one row per partition; `max` prevents two rows if a static value is written meanwhile."""
    keys = [quote_spark(one.name) for one in table.columns_with_roles(PARTITION)]
    names = dict.fromkeys([*([relation.element] if relation.element else []), *(one.of for one in columns)])
    statics = [one for one in table.columns_with_roles(STATIC) if one.name in names]
    chosen = [*keys]
    for one in statics:
        name = quote_spark(one.name)
        value = f"map_entries({name})" if one.kind.name == "map" else name
        chosen.append(f"max({value}) as {name}")
    return f"select {', '.join(chosen)} from {source} group by {', '.join(keys)}"  # noqa: S608 (quoted names)


def _element(relation: Relation, table: WideTable) -> WideColumn:
    column = table.column(relation.element)
    assert column is not None  # the map was checked
    return column


def _value(relation: Relation, table: WideTable, column: MappedColumn) -> _Value:
    if not column.of.startswith("@"):
        found = table.column(column.of)
        assert found is not None
        return _value_of(relation, column, found.kind, quote_spark(column.of))
    held = _element(relation, table)
    if column.of == "@position":
        return _Value(_AT)
    value = {"udt": quote_spark(held.name), "map": f"{_ENTRY}.value"}.get(held.kind.name, _VALUE)
    if column.of == "@key":
        return _value_of(relation, column, held.kind.parts[0], f"{_ENTRY}.key")
    inner = held.kind if held.kind.name == "udt" else held.kind.parts[-1]
    if column.of == "@value":
        return _value_of(relation, column, inner, value)
    name = column.of.removeprefix("@value.")
    kind = inner.parts[[one.of for one in element_columns(inner)].index(column.of)]
    return _value_of(relation, column, kind, f"{value}.{quote_spark(name)}")


def _value_of(relation: Relation, column: MappedColumn, kind: Kind, name: str) -> _Value:
    """Return the expression and guard of a value in the type that the map names."""
    sql, place = column.sql, f"{relation.of}, column {column.name}"
    if kind.name == "decimal" and sql.startswith("decimal"):
        cast = f"cast({name} as {sql})"
        return _Value(cast, _guard(f"{cast} is distinct from {name}", f"{place}: contains a value that is not a {sql}"))
    if kind.name == "timestamp" and sql in ("timestamp", "varchar"):
        said = f"{place}: an instant before {GREGORIAN} cannot be read by Spark"
        return _Value(name if sql == "timestamp" else _instant(name), _guard(f"{name} < timestamp'{GREGORIAN}'", said))
    made = _plain(kind, sql, name)
    if made is None:
        raise WideError(
            f"Spark cannot read a {kind.name} as {sql}",
            where=place,
            next_step="leave --engine spark or this column out, or write another type for the column in the map",
        )
    return _Value(made)


def _plain(kind: Kind, sql: str, name: str) -> str | None:
    """Return the expression of a value that needs no guard, or None if it cannot be read as this type."""
    if sql == "varchar" and kind.name in _AS_TEXT:
        return _AS_TEXT[kind.name](name)
    if sql == kind.sql and kind.is_scalar:
        return name
    if kind.name in _WHOLE and (sql in _WHOLE_SQL or sql.startswith("decimal")):
        return f"cast({name} as {_TYPES.get(sql, sql)})"
    if sql == "varchar" and kind.name in (*_WHOLE, "boolean", "date"):
        return f"cast({name} as string)"
    return None


def _guard(broken: str, said: str) -> str:
    """Return a condition that is true, or raises an error if `broken` holds."""
    words = said.replace("\\", "\\\\").replace("'", "\\'")
    return f"if({broken}, raise_error('{MARK}{words}'), true)"


def _instant(name: str) -> str:
    """Return a timestamp's text as Python writes it, with a fraction only if there is one."""
    fraction = f"if(date_format({name}, 'SSSSSS') = '000000', '', date_format({name}, '.SSSSSS'))"
    return f"concat(date_format({name}, 'yyyy-MM-dd HH:mm:ss'), {fraction})"


def _time(name: str) -> str:
    """Return the text of a time of day, given in nanoseconds, as Cassandra writes it."""
    parts = [
        f"lpad(cast({name} div 3600000000000 as string), 2, '0')",
        f"lpad(cast({name} div 60000000000 % 60 as string), 2, '0')",
        f"lpad(cast({name} div 1000000000 % 60 as string), 2, '0')",
    ]
    return f"concat(concat_ws(':', {', '.join(parts)}), '.', lpad(cast({name} % 1000000000 as string), 9, '0'))"


_AS_TEXT: Mapping[str, Callable[[str], str]] = {
    "inet": lambda name: f"{INET}({name})",
    "time": _time,
    "blob": lambda name: f"concat('0x', lower(hex({name})))",
}


def quote_spark(name: str) -> str:
    """Return the name in backquotes for Spark."""
    return "`" + name.replace("`", "``") + "`"
