"""Tables of a keyspace, read again from its catalog (`system_schema`) each time.

A column is part of the partition key, a clustering column, static (one value per partition) or regular. A map derives
its SQL tables from these roles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbdyno.base.errors import WideError
from dbdyno.wide.types import Kind, parse

PARTITION, CLUSTERING, STATIC, REGULAR = "partition_key", "clustering", "static", "regular"
_COLUMNS = "select table_name, column_name, kind, position, type from system_schema.columns where keyspace_name = %s"
_TYPES = "select type_name, field_names, field_types from system_schema.types where keyspace_name = %s"
_INDEXES = "select table_name, kind, options from system_schema.indexes where keyspace_name = %s"


@dataclass(frozen=True)
class WideColumn:
    """Column of a Cassandra table."""

    name: str
    role: str
    kind: Kind


@dataclass(frozen=True)
class WideTable:
    """Cassandra table; `indexed` names columns on which an index supports equality."""

    name: str
    columns: tuple[WideColumn, ...]
    indexed: frozenset[str] = field(default_factory=frozenset)

    def columns_with_roles(self, *roles: str) -> tuple[WideColumn, ...]:
        """Return the columns with these roles, in order."""
        return tuple(one for role in roles for one in self.columns if one.role == role)

    def column(self, name: str) -> WideColumn | None:
        """Return the column with this name, or None."""
        return next((one for one in self.columns if one.name == name), None)

    @property
    def key(self) -> tuple[WideColumn, ...]:
        """Return the columns of the primary key: partition key, then clustering columns."""
        return self.columns_with_roles(PARTITION, CLUSTERING)


def read_keyspace(session: Any, keyspace: str) -> dict[str, WideTable]:
    """Return the tables of a keyspace by name.

    Raises:
        WideError: The keyspace has no tables.
    """
    fields = {name: list(zip(names, kinds, strict=True)) for name, names, kinds in session.execute(_TYPES, [keyspace])}
    found: dict[str, list[tuple[int, WideColumn]]] = {}
    for table, column, role, position, kind in session.execute(_COLUMNS, [keyspace]):
        made = WideColumn(column, role, parse(kind, fields))
        found.setdefault(table, []).append((position, made))
    if not found:
        raise WideError("contains no table", where=keyspace, next_step="name a keyspace with tables")
    indexed: dict[str, set[str]] = {}
    for table, _, options in session.execute(_INDEXES, [keyspace]):
        indexed.setdefault(table, set()).add(str(options.get("target", "")).strip('"'))
    return {name: _table(name, columns, indexed) for name, columns in sorted(found.items())}


def _table(name: str, columns: list[tuple[int, WideColumn]], indexed: Mapping[str, set[str]]) -> WideTable:
    roles = (PARTITION, CLUSTERING, STATIC, REGULAR)
    ordered = sorted(columns, key=lambda one: (roles.index(one[1].role), one[0], one[1].name))
    names = {one.name for _, one in columns}
    return WideTable(name, tuple(one for _, one in ordered), frozenset(indexed.get(name, set()) & names))
