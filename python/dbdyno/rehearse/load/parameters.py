"""Values for parameters that nobody captured, drawn from the statistics of the compared column.

A parameter that is compared with a column, assigned to it or inserted into it takes the column's most common values by
their frequency and the quantiles of its histogram, as `pg_stats` has them. Other parameters take a value of their type.
Values for a unique column are new to it, so that an INSERT does not violate uniqueness.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from dbdyno.rehearse.sql_tree import number_of, parameters, parse_sql

_ROWS = 10
"""Value for parameters of LIMIT."""
_BY_TYPE = {
    16: ("true", "false"),
    20: ("1", "2", "10", "100", "1000"),
    21: ("1", "2", "10", "100", "1000"),
    23: ("1", "2", "10", "100", "1000"),
    25: ("a", "abc", "x1"),
    700: ("0.5", "1", "10"),
    701: ("0.5", "1", "10"),
    1042: ("a",),
    1043: ("a", "abc", "x1"),
    1082: ("2026-01-01", "2026-06-30"),
    1114: ("2026-01-01", "2026-06-30"),
    1184: ("2026-01-01", "2026-06-30"),
    1186: ("1 day", "1 hour", "30 days"),
    1700: ("1", "10", "100"),
    2950: ("00000000-0000-4000-8000-000000000001",),
    114: ("{}",),
    3802: ("{}",),
}
"""Values for parameters without a known column, by type OID."""


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Distribution of a column's values, from `pg_stats`.

    Attributes:
        common: Most common values.
        frequencies: Their shares of all rows.
        bounds: Bounds of the histogram of all other values.
        is_unique: True if the table has a unique index on only this column.
    """

    common: tuple[str, ...] = ()
    frequencies: tuple[float, ...] = ()
    bounds: tuple[str, ...] = ()
    is_unique: bool = False

    def value_at(self, share: float) -> str | None:
        """Return the value at a quantile position between 0 and 1; common values come first."""
        left = share
        for value, frequency in zip(self.common, self.frequencies, strict=False):
            if left < frequency:
                return value
            left -= frequency
        rest = 1.0 - sum(self.frequencies)
        if self.bounds:
            place = min(max(left / rest, 0.0), 1.0) if rest > 0 else 0.5
            return self.bounds[min(int(place * len(self.bounds)), len(self.bounds) - 1)]
        return self.common[-1] if self.common else None


Columns = Mapping[str, Mapping[str, ColumnStatistics]]
"""Statistics of columns by table and column."""


def compared_columns(text: str, columns: Columns) -> dict[int, tuple[str, str]]:
    """Return the table and column with which each parameter is compared, or to which it is assigned or inserted."""
    from sqlglot import expressions as exp

    tree = parse_sql(text)
    found: dict[int, tuple[str, str]] = {}
    for one in parameters(tree):
        number = number_of(one)
        place = _inserted_column(one) or _compared_column(one)
        if place is None or number in found:
            continue
        table, column = place
        names = _tables(one, exp)
        known = (
            [names.get(table, table)] if table else [name for name in names.values() if column in columns.get(name, {})]
        )
        if len(set(known)) == 1 and column in columns.get(known[0], {}):
            found[number] = (known[0], column)
    return found


def limit_values(text: str) -> dict[int, str]:
    """Return the values for parameters of LIMIT and OFFSET."""
    from sqlglot import expressions as exp

    found = {}
    for one in parameters(parse_sql(text)):
        if one.find_ancestor(exp.Limit, exp.Fetch) is not None:
            found[number_of(one)] = str(_ROWS)
        elif one.find_ancestor(exp.Offset) is not None:
            found[number_of(one)] = "0"
    return found


def value_of(kind: int, share: float, statistics: ColumnStatistics | None, *, is_new: bool) -> tuple[str | None, str]:
    """Return a value for a parameter, and its origin: `data` for a value of the column, `type` for a generated one.

    Args:
        kind: OID of the parameter's type.
        share: Place in the distribution, between 0 and 1.
        statistics: Distribution of the column; None if no column is known.
        is_new: True if the value must not exist in a unique column.
    """
    if statistics is not None:
        if is_new and statistics.is_unique:
            return _new_value(kind, share, statistics), "data"
        value = statistics.value_at(share)
        if value is not None:
            return value, "data"
    choices = _BY_TYPE.get(kind)
    if choices is None:
        return ("{}" if kind in _ARRAYS else None), "type"
    return choices[min(int(share * len(choices)), len(choices) - 1)], "type"


_ARRAYS = (1005, 1007, 1009, 1015, 1016, 1021, 1022, 1115, 1182, 1185, 1231, 2951)


_LARGEST = {20: 2**63 - 1, 21: 2**15 - 1, 23: 2**31 - 1}
"""Largest values of the integer types, by type OID; numeric has no limit."""


def _new_value(kind: int, share: float, statistics: ColumnStatistics) -> str:
    if kind in _LARGEST or kind == 1700:
        return str(_new_number(_LARGEST.get(kind), share, statistics))
    made = uuid.uuid5(uuid.NAMESPACE_OID, f"dbdyno {share}")
    return str(made) if kind == 2950 else made.hex


def _new_number(largest: int | None, share: float, statistics: ColumnStatistics) -> int:
    """Return a number that is unlikely to be in a unique column: far above its values, or just outside their range."""
    values = [_number(text) for text in (*statistics.bounds, *statistics.common)]
    numbers = [int(value) for value in values if value.is_finite()]
    low, high = min(numbers, default=0), max(numbers, default=0)
    far, near = max(high, 0) * 2 + 1_000_000 + int(share * 1_000_000), 1 + int(share * 1_000)
    if largest is None or far <= largest:
        return far
    return high + near if high + near <= largest else max(low - near, -largest)


def _number(text: str) -> Decimal:
    """Return a number from the statistics; NaN if the text is not a number."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("nan")


def _compared_column(one: Any) -> tuple[str, str] | None:
    """Return the qualifier and name of the column on the other side of a comparison or an assignment."""
    from sqlglot import expressions as exp

    node = one
    while node.parent is not None and isinstance(node.parent, (exp.Cast, exp.Paren, exp.Any, exp.Tuple, exp.Neg)):
        node = node.parent
    over = node.parent
    if not isinstance(over, (exp.Predicate, exp.In, exp.Between, exp.Binary)):
        return None
    other = over.this if over.this is not node else over.args.get("expression")
    while isinstance(other, (exp.Cast, exp.Paren, exp.Lower, exp.Upper)):
        other = other.this
    return (other.table, other.name) if isinstance(other, exp.Column) else None


def _inserted_column(one: Any) -> tuple[str, str] | None:
    """Return the table and column into which an INSERT puts a value."""
    from sqlglot import expressions as exp

    node = one
    while isinstance(node.parent, (exp.Cast, exp.Paren)):
        node = node.parent
    row, insert = node.parent, one.find_ancestor(exp.Insert)
    if insert is None or not isinstance(row, exp.Tuple) or not isinstance(row.parent, exp.Values):
        return None
    schema = insert.this
    if not isinstance(schema, exp.Schema):
        return None
    place = next(at for at, value in enumerate(row.expressions) if value is node)
    return (schema.this.name, schema.expressions[place].name) if place < len(schema.expressions) else None


def _tables(one: Any, exp: Any) -> dict[str, str]:
    """Return the tables in the scope of a parameter, by alias."""
    names: dict[str, str] = {}
    node = one
    while node is not None:
        if isinstance(node, (exp.Select, exp.Update, exp.Delete, exp.Insert, exp.Merge)):
            for table in node.find_all(exp.Table):
                names.setdefault(table.alias_or_name, table.name)
        node = node.parent
    return names


def quantile_positions(count: int, number: int) -> Sequence[float]:
    """Return quantile positions between 0 and 1 for `count` sets of values, in a different order for each parameter."""
    step = 2 * number + 1
    return [((at * step) % count + 0.5) / count for at in range(count)]
