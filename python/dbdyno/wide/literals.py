"""Conversion of a query's constants to Cassandra values where both systems give them the same meaning.

The result is None where the meaning differs or might differ; DuckDB then evaluates the condition. Pushing down too
little costs time, but pushing down wrongly loses rows. Not pushed down are numbers that a column cannot hold, zero of a
float (Cassandra distinguishes two zeros), and times of day, addresses and durations, which DuckDB compares as text.
"""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

from dbdyno.wide.types import Kind

BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
UNORDERED = {"uuid", "timeuuid", "inet", "duration", "time"}
"""Types whose order in Cassandra differs from the order of their text."""
NOT_COMPARABLE = {"inet", "duration", "time", "counter"}


def is_ordered(kind: Kind) -> bool:
    """Return True if a range comparison means the same in Cassandra and in SQL."""
    return kind.is_scalar and kind.name not in UNORDERED


def as_cql(kind: Kind, value: Any) -> Any:
    """Return the value in the form that the driver accepts, or None if it cannot be pushed down."""
    if value is None or kind.name in NOT_COMPARABLE:
        return None
    for names, convert in _CONVERT:
        if kind.name in names:
            return convert(kind, value)
    return None


def _integer(kind: Kind, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or value != int(value):
        return None
    bits = BITS.get(kind.name)
    if bits is not None and not -(1 << bits - 1) <= value < 1 << bits - 1:
        return None
    return int(value)


def _decimal(kind: Kind, value: Any) -> Any:
    return Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None


def _double(kind: Kind, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    import struct

    number = float(value)
    # SQL compares a 32-bit column with all bits of the constant.
    exact = kind.name == "double" or struct.unpack("f", struct.pack("f", number))[0] == number
    return number if number != 0 and exact and Decimal(number) == Decimal(value) else None


def _text(kind: Kind, value: Any) -> Any:
    if not isinstance(value, str) or "\x00" in value:
        return None
    return value if kind.name != "ascii" or value.isascii() else None


def _date(kind: Kind, value: Any) -> Any:
    if isinstance(value, str):
        value = _parse(dt.date.fromisoformat, value)
    if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
        return None
    return value


def _timestamp(kind: Kind, value: Any) -> Any:
    if isinstance(value, str):
        value = _parse(dt.datetime.fromisoformat, value)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    if not isinstance(value, dt.datetime) or value.tzinfo is not None or value.microsecond % 1000:
        return None
    return value


def _parse(parse: Any, value: str) -> Any:
    try:
        return parse(value)
    except ValueError:
        return None


def _uuid(kind: Kind, value: Any) -> Any:
    if not isinstance(value, str):
        return None
    made = _parse(uuid.UUID, value)
    # DuckDB compares the text: the same UUID written differently is a different text.
    return made if made is not None and str(made) == value else None


def _boolean(kind: Kind, value: Any) -> Any:
    return value if isinstance(value, bool) else None


_CONVERT = (
    (("tinyint", "smallint", "int", "bigint", "varint"), _integer),
    (("decimal",), _decimal),
    (("float", "double"), _double),
    (("text", "varchar", "ascii"), _text),
    (("date",), _date),
    (("timestamp",), _timestamp),
    (("uuid", "timeuuid"), _uuid),
    (("boolean",), _boolean),
)
