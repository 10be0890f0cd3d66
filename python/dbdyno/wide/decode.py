"""Conversion of Cassandra rows to Arrow; each value is converted exactly, or refused with its position."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from dbdyno.base.errors import WideError
from dbdyno.wide.catalog import CLUSTERING
from dbdyno.wide.mapping import CHILD, ELEMENT, MappedColumn, element_columns
from dbdyno.wide.pushdown import Scan
from dbdyno.wide.types import DECIMAL, Kind

Row = Sequence[Any]
_CLOCK = (
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
)


def arrow() -> Any:
    """Import and return pyarrow.

    Raises:
        WideError: pyarrow is not installed.
    """
    try:
        import pyarrow
    except ImportError:
        raise WideError("Arrow is not installed", next_step="run `pip install 'dbdyno[wide]'`") from None
    return pyarrow


def arrow_type(sql: str) -> Any:
    """Return the Arrow type for an SQL type."""
    pa = arrow()
    found = DECIMAL.fullmatch(sql)
    if found:
        return pa.decimal128(int(found[1]), int(found[2]))
    return {
        "varchar": pa.string(),
        "integer": pa.int32(),
        "bigint": pa.int64(),
        "smallint": pa.int16(),
        "tinyint": pa.int8(),
        "float": pa.float32(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "blob": pa.binary(),
        "timestamp": pa.timestamp("us"),
        "date": pa.date32(),
    }[sql]


class Decoder:
    """Converter of a scan's rows to Arrow record batches."""

    def __init__(self, scan: Scan) -> None:
        pa = arrow()
        self.scan = scan
        self.schema = pa.schema([pa.field(one.name, arrow_type(one.sql)) for one in scan.columns])
        self._at = {one.name: place for place, one in enumerate(scan.selected)}
        first = scan.table.columns_with_roles(CLUSTERING)[:1]
        # A partition with static columns only is returned as a row without clustering columns.
        self._must = self._at.get(first[0].name) if first and scan.relation.rows in (CHILD, ELEMENT) else None
        self._makers = [self._maker(one) for one in scan.columns]

    def batch(self, rows: Sequence[Row]) -> Any:
        """Return the rows as a record batch.

        Raises:
            WideError: A value does not fit its column's type.
        """
        pa = arrow()
        if self._must is not None:
            rows = [row for row in rows if row[self._must] is not None]
        pairs: Sequence[Any] = rows
        if self.scan.relation.rows == ELEMENT:
            pairs = list(self._elements(rows))
        arrays = []
        for make, field in zip(self._makers, self.schema, strict=True):
            values = [make(one) for one in pairs]
            try:
                arrays.append(pa.array(values, type=field.type))
            except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
                raise WideError(
                    f"contains a value that is not of type {field.type}: {str(error).splitlines()[0]}",
                    where=f"{self.scan.table.name}, column {field.name}",
                    next_step='write another type for the column in the map, such as type = "varchar"',
                ) from None
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema) if arrays else _empty(pa, len(pairs))

    def _maker(self, column: MappedColumn) -> Callable[[Any], Any]:
        if not column.of.startswith("@"):
            place, kind = self._at[column.of], self._kind(column.of)
            convert = converter(kind, column.sql)
            if self.scan.relation.rows == ELEMENT:
                return lambda pair: convert(pair[0][place])
            return lambda row: convert(row[place])
        kind = self._kind(self.scan.relation.element)
        convert = converter(_kind_of(kind, column.of), column.sql)
        if column.of == "@position":
            return lambda pair: pair[1]
        if column.of == "@key":
            return lambda pair: convert(pair[2])
        if column.of == "@value":
            return lambda pair: convert(pair[3])
        inner = kind if kind.name == "udt" else kind.parts[-1]
        at = inner.fields.index(column.of.removeprefix("@value."))
        return lambda pair: convert(_field(pair[3], at))

    def _kind(self, name: str) -> Kind:
        column = self.scan.table.column(name)
        assert column is not None
        return column.kind

    def _elements(self, rows: Sequence[Row]) -> Iterator[tuple[Row, int, Any, Any]]:
        """Yield row, position, key and value of each element of a collection."""
        place, kind = self._at[self.scan.relation.element], self._kind(self.scan.relation.element)
        for row in rows:
            held = row[place]
            if held is None:
                continue
            if kind.name == "udt":
                yield row, 0, None, held
            elif kind.name == "map":
                for at, (key, value) in enumerate(held.items()):
                    yield row, at, key, value
            else:
                for at, value in enumerate(held):
                    yield row, at, None, value


def _empty(pa: Any, count: int) -> Any:
    return pa.RecordBatch.from_arrays([pa.nulls(count, pa.int8())], names=["_"])


def _kind_of(kind: Kind, of: str) -> Kind:
    if of == "@key":
        return kind.parts[0]
    inner = kind if kind.name == "udt" else kind.parts[-1]
    if of.startswith("@value."):
        names = [one.of for one in element_columns(inner)]
        return inner.parts[names.index(of)]
    return inner


def _field(value: Any, at: int) -> Any:
    """Return a field of a UDT value; None if the field was added to the type after the value was written."""
    return value[at] if value is not None and at < len(value) else None


def converter(kind: Kind, sql: str) -> Callable[[Any], Any]:
    """Return the function that converts a driver's value to one that Arrow accepts for the SQL type."""
    if sql == "varchar":
        return _as_text if kind.name not in ("text", "varchar", "ascii") else _as_is
    if kind.name == "date":
        return _days
    if sql.startswith("decimal"):
        return _as_decimal
    return _as_is


def _as_is(value: Any) -> Any:
    return value


def _days(value: Any) -> Any:
    return None if value is None else value.days_from_epoch


def _as_decimal(value: Any) -> Any:
    return value if value is None or isinstance(value, Decimal) else Decimal(value)


def _as_text(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if hasattr(value, "nanoseconds") and hasattr(value, "months"):
        return _duration(value)
    return json.dumps(_plain(value), ensure_ascii=False) if _is_made_up(value) else str(value)


def _duration(value: Any) -> str:
    """Return a duration as Cassandra writes it, such as 1y2mo3d4h5m6s7ms8us9ns."""
    parts: list[str] = []
    for rest, units in ((value.months, (("y", 12), ("mo", 1))), (value.days, (("d", 1),)), (value.nanoseconds, _CLOCK)):
        left = abs(rest)
        for unit, size in units:
            count, left = divmod(left, size)
            parts += [f"{count}{unit}"] if count else []
    sign = "-" if min(value.months, value.days, value.nanoseconds) < 0 else ""
    return sign + "".join(parts)


def _is_made_up(value: Any) -> bool:
    return isinstance(value, list | tuple | dict) or hasattr(value, "items") or type(value).__name__ == "SortedSet"


def _plain(value: Any) -> Any:
    """Return a value in JSON types; anything else becomes text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "_fields"):
        return {name: _plain(one) for name, one in zip(value._fields, value, strict=True)}
    if hasattr(value, "items"):
        return {str(_plain(key)): _plain(one) for key, one in value.items()}
    if _is_made_up(value):
        return [_plain(one) for one in value]
    return _as_text(value)
