"""What a keyspace is made of, read from its own catalogue (`system_schema`), fresh at each look.

A column is of the partition key, a clustering column, static (once for each partition) or regular. That is the split
that a map makes tables of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbdyno.base.errors import WideError
from dbdyno.wide.types import Kind, parse

PARTITION, CLUSTERING, STATIC, REGULAR = "partition_key", "clustering", "static", "regular"
_COLUMNS = (
    "select table_name, column_name, kind, position, type, clustering_order from system_schema.columns"
    " where keyspace_name = %s"
)
_TYPES = "select type_name, field_names, field_types from system_schema.types where keyspace_name = %s"
_INDEXES = "select table_name, kind, options from system_schema.indexes where keyspace_name = %s"


@dataclass(frozen=True)
class WideColumn:
    """A column of a wide table."""

    name: str
    role: str
    kind: Kind
    descending: bool = False


@dataclass(frozen=True)
class WideTable:
    """A table of Cassandra. `indexed`: columns that an index answers equality for."""

    name: str
    columns: tuple[WideColumn, ...]
    indexed: frozenset[str] = field(default_factory=frozenset)

    def of(self, *roles: str) -> tuple[WideColumn, ...]:
        """Its columns of these roles, in order."""
        return tuple(one for role in roles for one in self.columns if one.role == role)

    def column(self, name: str) -> WideColumn | None:
        """A column by name."""
        return next((one for one in self.columns if one.name == name), None)

    @property
    def key(self) -> tuple[WideColumn, ...]:
        """Its whole key: partition, then clustering."""
        return self.of(PARTITION, CLUSTERING)


def read_keyspace(session: Any, keyspace: str) -> dict[str, WideTable]:
    """The tables of a keyspace. Raises `WideError` where there are none."""
    fields = {name: list(zip(names, kinds, strict=True)) for name, names, kinds in session.execute(_TYPES, [keyspace])}
    found: dict[str, list[tuple[int, WideColumn]]] = {}
    for table, column, role, position, kind, order in session.execute(_COLUMNS, [keyspace]):
        made = WideColumn(column, role, parse(kind, fields), order == "desc")
        found.setdefault(table, []).append((position, made))
    if not found:
        raise WideError("holds no table", where=keyspace, next_step="name a keyspace with tables")
    indexed: dict[str, set[str]] = {}
    for table, _, options in session.execute(_INDEXES, [keyspace]):
        indexed.setdefault(table, set()).add(str(options.get("target", "")).strip('"'))
    return {name: _table(name, columns, indexed) for name, columns in sorted(found.items())}


def _table(name: str, columns: list[tuple[int, WideColumn]], indexed: Mapping[str, set[str]]) -> WideTable:
    roles = (PARTITION, CLUSTERING, STATIC, REGULAR)
    ordered = sorted(columns, key=lambda one: (roles.index(one[1].role), one[0], one[1].name))
    names = {one.name for _, one in columns}
    return WideTable(name, tuple(one for _, one in ordered), frozenset(indexed.get(name, set()) & names))
