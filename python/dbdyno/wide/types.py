"""Types of CQL: their parser, and the SQL type of each.

Every value is preserved or refused, never changed silently: an integer of any size is a decimal(38,0), a decimal has
the scale that the map names, and a value that does not fit is an error with its position. An instant is a timestamp in
UTC. Times of day, durations, UUIDs and addresses are text as Cassandra writes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SQL_TYPES = {
    "ascii": "varchar",
    "text": "varchar",
    "varchar": "varchar",
    "int": "integer",
    "bigint": "bigint",
    "counter": "bigint",
    "smallint": "smallint",
    "tinyint": "tinyint",
    "varint": "decimal(38,0)",
    "decimal": "decimal(38,10)",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "blob": "blob",
    "timestamp": "timestamp",
    "date": "date",
    "time": "varchar",
    "uuid": "varchar",
    "timeuuid": "varchar",
    "inet": "varchar",
    "duration": "varchar",
}
"""SQL type of each scalar CQL type, unless the map says otherwise."""
DECIMAL = re.compile(r"decimal\((\d{1,2}),\s*(\d{1,2})\)")
_TOKEN = re.compile(r'([<>,]|"(?:[^"]|"")*"|\w+)')
COLLECTIONS = {"list": 1, "set": 1, "map": 2}


@dataclass(frozen=True)
class Kind:
    """CQL type: its name, its element or field types, and the field names of a UDT."""

    name: str
    parts: tuple[Kind, ...] = ()
    fields: tuple[str, ...] = ()
    frozen: bool = False

    @property
    def is_scalar(self) -> bool:
        """Return True for types that hold a single value (not a collection, tuple or UDT)."""
        return self.name in SQL_TYPES

    @property
    def is_collection(self) -> bool:
        """Return True for a list, a set or a map."""
        return self.name in COLLECTIONS

    @property
    def sql(self) -> str:
        """Return the SQL type; `varchar` (JSON) for types that hold several values."""
        return SQL_TYPES.get(self.name, "varchar")


def parse(text: str, fields: Mapping[str, Sequence[tuple[str, str]]]) -> Kind:
    """Parse a type as the catalog writes it; an unknown syntax becomes a type of that name.

    Args:
        text: The type.
        fields: For each UDT of the keyspace, the names and types of its fields.
    """
    tokens = [one.group(1) for one in _TOKEN.finditer(text)]
    try:
        kind, rest = _read(tokens, fields)
    except _OddError:
        return Kind(text)
    return Kind(text) if rest else kind


class _OddError(Exception):
    """Raised for a type whose syntax is unknown."""


def _read(tokens: list[str], fields: Mapping[str, Sequence[tuple[str, str]]]) -> tuple[Kind, list[str]]:
    if not tokens or tokens[0] in "<>,":
        raise _OddError
    name, rest, parts = tokens[0].strip('"'), tokens[1:], []
    if rest and rest[0] == "<":
        while rest and rest[0] in "<,":
            part, rest = _read(rest[1:], fields)
            parts.append(part)
        if not rest or rest[0] != ">":
            raise _OddError
        rest = rest[1:]
    if name == "frozen" and len(parts) == 1:
        inner = parts[0]
        return Kind(inner.name, inner.parts, inner.fields, frozen=True), rest
    if name in fields and not parts:
        kinds = tuple(parse(kind, fields) for _, kind in fields[name])
        return Kind("udt", kinds, tuple(one for one, _ in fields[name])), rest
    return Kind(name, tuple(parts)), rest
