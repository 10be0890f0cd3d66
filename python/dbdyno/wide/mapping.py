"""The map of a keyspace: its SQL tables, with keys named by the user. It is a file that people edit.

    [table.customers]                  a name in SQL
    of = "orders_by_customer"          the Cassandra table
    rows = "parent"                    parent: one per partition; child: one per row; element: of a collection
    primary_key = { name = "customers_pk", columns = ["customer_id"] }
    [table.customers.columns]
    customer_id = "customer_id"        name in SQL = column of Cassandra

A parent has the partition key and the static columns; a child has the whole key and the regular columns. An element (or
the fields of a UDT) has the key of the row it belongs to, and columns of the element itself: `@position`, `@key`,
`@value`, or a field such as `@value.street`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dbdyno.base.errors import WideError
from dbdyno.base.json_types import JsonObject
from dbdyno.wide.catalog import PARTITION, REGULAR, STATIC, WideColumn, WideTable
from dbdyno.wide.types import Kind

PARENT, CHILD, ELEMENT = "parent", "child", "element"
VERSION = 1


@dataclass(frozen=True)
class MappedColumn:
    """SQL column: its name, its source (`of`), and its SQL type."""

    name: str
    of: str
    sql: str


@dataclass(frozen=True)
class Key:
    """Primary key, or a foreign key if it `references` a table."""

    name: str
    columns: tuple[str, ...]
    references: str = ""


@dataclass(frozen=True)
class Relation:
    """SQL table; for rows of kind "element", `element` names the collection column."""

    name: str
    of: str
    rows: str
    columns: tuple[MappedColumn, ...]
    primary_key: Key
    foreign_key: Key | None = None
    element: str = ""

    def column(self, name: str) -> MappedColumn | None:
        """Return the column with this SQL name, or None."""
        return next((one for one in self.columns if one.name == name), None)

    def column_of_source(self, of: str) -> MappedColumn | None:
        """Return the SQL column whose source is this Cassandra column, or None."""
        return next((one for one in self.columns if one.of == of), None)


@dataclass(frozen=True)
class WideMap:
    """Keyspace as SQL tables."""

    keyspace: str
    relations: tuple[Relation, ...]
    tables: Mapping[str, WideTable] = field(default_factory=dict)

    def relation(self, name: str) -> Relation | None:
        """Return the SQL table with this name, ignoring case as SQL does, or None."""
        return next((one for one in self.relations if one.name.lower() == name.lower()), None)


def map_of(keyspace: str, tables: Mapping[str, WideTable], names: Mapping[str, Sequence[str]]) -> WideMap:
    """Return the map that the catalog suggests.

    Args:
        keyspace: The keyspace.
        tables: Its tables by name.
        names: For some Cassandra tables, the SQL names of their child and parent.

    Raises:
        WideError: A name is used twice, or a table does not exist.
    """
    unknown = next((name for name in names if name not in tables), None)
    if unknown is not None:
        raise WideError(
            f"there is no table {unknown}", where=f"--name {unknown}=...", next_step=f"name one of: {', '.join(tables)}"
        )
    relations = tuple(one for table in tables.values() for one in _relations(table, names.get(table.name, ())))
    seen: set[str] = set()
    for one in relations:
        if one.name.lower() in seen:
            raise WideError(
                f"two tables are named {one.name}",
                where="--name",
                next_step="rename the tables with --name WIDE=CHILD,PARENT",
            )
        seen.add(one.name.lower())
    return WideMap(keyspace, relations, tables)


def _relations(table: WideTable, names: Sequence[str]) -> Iterator[Relation]:
    child = names[0] if names else table.name
    parent = names[1] if len(names) > 1 else f"{table.name}_parent"
    partition, key = table.columns_with_roles(PARTITION), table.key
    above = Key(f"{parent}_pk", tuple(one.name for one in partition))
    whole = Key(f"{child}_pk", tuple(one.name for one in key))
    regular = table.columns_with_roles(REGULAR)
    if len(key) == len(partition):
        yield Relation(child, table.name, PARENT, _map_columns((*key, *regular)), whole)
        yield from _elements(table, child, regular, whole)
        return
    static = table.columns_with_roles(STATIC)
    yield Relation(parent, table.name, PARENT, _map_columns((*partition, *static)), above)
    yield from _elements(table, parent, static, above)
    up = Key(f"{child}_{parent}_fk", above.columns, parent)
    yield Relation(child, table.name, CHILD, _map_columns((*key, *regular)), whole, up)
    yield from _elements(table, child, regular, whole)


def _map_columns(columns: Sequence[WideColumn]) -> tuple[MappedColumn, ...]:
    return tuple(MappedColumn(one.name, one.name, one.kind.sql) for one in columns if not is_separate_table(one))


def is_separate_table(column: WideColumn) -> bool:
    """Return True if the column becomes a separate SQL table; key columns always stay in their row."""
    return column.role in (STATIC, REGULAR) and (column.kind.is_collection or column.kind.name == "udt")


def _elements(table: WideTable, owner: str, columns: Sequence[WideColumn], key: Key) -> Iterator[Relation]:
    keys = tuple(MappedColumn(one.name, one.name, one.kind.sql) for one in table.key if one.name in key.columns)
    for column in columns:
        if not is_separate_table(column):
            continue
        name = f"{owner}_{column.name}"
        parts = element_columns(column.kind)
        taken = set(key.columns)
        free = tuple(replace(one, name=f"{column.name}_{one.name}") if one.name in taken else one for one in parts)
        which = {"list": ("@position",), "map": ("@key",), "set": tuple(one.of for one in free)}.get(
            column.kind.name, ()
        )
        primary = Key(f"{name}_pk", (*key.columns, *(one.name for one in free if one.of in which)))
        up = Key(f"{name}_{owner}_fk", key.columns, owner)
        yield Relation(name, table.name, ELEMENT, (*keys, *free), primary, up, column.name)


def element_columns(kind: Kind) -> tuple[MappedColumn, ...]:
    """Return the SQL columns that describe an element of a collection, or the fields of a UDT."""
    if kind.name == "udt":
        return tuple(
            MappedColumn(name, f"@value.{name}", part.sql) for name, part in zip(kind.fields, kind.parts, strict=True)
        )
    value = kind.parts[-1]
    first = {
        "list": (MappedColumn("position", "@position", "integer"),),
        "map": (MappedColumn("key", "@key", kind.parts[0].sql),),
    }.get(kind.name, ())
    if value.name != "udt":
        return (*first, MappedColumn("value", "@value", value.sql))
    return (*first, *element_columns(value))


def check(wide_map: WideMap, tables: Mapping[str, WideTable], where: str) -> WideMap:
    """Return the map with its Cassandra tables and all types filled in.

    Raises:
        WideError: The map does not fit the tables; the error names the position.
    """
    for relation in wide_map.relations:
        place = f"{where}: table.{relation.name}"
        table = tables.get(relation.of)
        if table is None:
            raise WideError(
                f"there is no table {relation.of} in {wide_map.keyspace}",
                where=f"{place}.of",
                next_step=f"name one of: {', '.join(tables)}, or write a new map with `dbdyno wide map`",
            )
        _check_columns(relation, table, place)
        _check_keys(relation, wide_map, place)
    return replace(
        wide_map, relations=tuple(_with_types(one, tables) for one in wide_map.relations), tables=dict(tables)
    )


def _with_types(relation: Relation, tables: Mapping[str, WideTable]) -> Relation:
    columns = (replace(one, sql=one.sql or default_type(relation, one.of, tables)) for one in relation.columns)
    return replace(relation, columns=tuple(columns))


def default_type(relation: Relation, of: str, tables: Mapping[str, WideTable]) -> str:
    """Return the SQL type of a column whose type is not in the map; empty if the source is unknown."""
    table = tables.get(relation.of)
    if table is None:
        return ""
    if of.startswith("@"):
        column = table.column(relation.element)
        parts = element_columns(column.kind) if column is not None else ()
        return next((one.sql for one in parts if one.of == of), "")
    column = table.column(of)
    return column.kind.sql if column is not None else ""


def _check_columns(relation: Relation, table: WideTable, place: str) -> None:
    allowed = allowed_columns(relation, table, place)
    for column in relation.columns:
        if column.of not in allowed:
            raise WideError(
                f"{column.of!r} is not a column of a {relation.rows} of {table.name}",
                where=f"{place}.columns.{column.name}",
                next_step=f"use one of: {', '.join(allowed)}",
            )


def allowed_columns(relation: Relation, table: WideTable, place: str) -> tuple[str, ...]:
    """Return the sources that columns of this SQL table may have.

    Raises:
        WideError: The element of the SQL table is not a collection or UDT.
    """
    partition = tuple(one.name for one in table.columns_with_roles(PARTITION))
    key = tuple(one.name for one in table.key)
    if relation.rows == PARENT:
        role = STATIC if len(key) > len(partition) else REGULAR
        return (*partition, *(one.name for one in table.columns_with_roles(role)))
    if relation.rows == CHILD:
        return (*key, *(one.name for one in table.columns_with_roles(REGULAR, STATIC)))
    column = table.column(relation.element)
    if column is None or not is_separate_table(column):
        raise WideError(
            f"{relation.element!r} is neither a collection of {table.name} nor a user-defined type",
            where=f"{place}.element",
            next_step="name one of: "
            + (", ".join(one.name for one in table.columns if is_separate_table(one)) or "none"),
        )
    return (*(partition if column.role == STATIC else key), *(one.of for one in element_columns(column.kind)))


def _check_keys(relation: Relation, wide_map: WideMap, place: str) -> None:
    for word, key in (("primary_key", relation.primary_key), ("foreign_key", relation.foreign_key)):
        missing = next((name for name in key.columns if relation.column(name) is None), None) if key else None
        if missing is not None:
            names = ", ".join(one.name for one in relation.columns)
            raise WideError(f"has no column {missing!r}", where=f"{place}.{word}", next_step=f"name one of: {names}")
    key = relation.foreign_key
    if key is None:
        return
    above = wide_map.relation(key.references)
    if above is None or len(above.primary_key.columns) != len(key.columns):
        said = f"no table {key.references!r} is in the map"
        if above is not None:
            said = (
                f"the primary key of {above.name} has {len(above.primary_key.columns)} columns, not {len(key.columns)}"
            )
        raise WideError(said, where=f"{place}.foreign_key", next_step="name as many columns as the referenced key has")


def as_dict(value: Any, where: str) -> JsonObject:
    """Return the value if it is a TOML table.

    Raises:
        WideError: The value is not a TOML table.
    """
    if not isinstance(value, dict):
        raise WideError(
            f"must be a table, found {value!r}",
            where=where,
            next_step="compare with the map that `dbdyno wide map` writes",
        )
    return value
