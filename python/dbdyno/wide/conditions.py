"""The conditions of a SELECT that no row of its answer can fail, as comparisons of columns with constants.

They are taken from WHERE, and from ON where the join keeps only rows that meet it; equalities between columns carry a
constant over a join. Leaving out rows of a table that fail them changes no answer, since a comparison is never met by
NULL, which is what an outer join makes up.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from dbdyno.wide.pushdown import Condition

Place = tuple[str, str]
"""Alias of a table, name of a column."""
_FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def conditions(select: Any) -> Iterator[tuple[str, str, Condition]]:
    """Alias, column and condition, of one SELECT without those inside of it."""
    from sqlglot import exp

    if not isinstance(select, exp.Select):
        return
    joins = select.args.get("joins") or []
    always, right = _parts(select, joins)
    constants = [pair for part in always for pair in simple(part)]
    equal = _classes([part for part in always if _is_link(part)])
    for place, condition in constants:
        for alias, name in equal.get(place, {place}):
            yield alias, name, condition
    known = {place: condition for place, condition in constants if condition.op in ("=", "in")}
    for joined, part in right:
        for (alias, name), condition in simple(part):
            if alias == joined:
                yield alias, name, condition
        yield from _carried(joined, part, equal, known)


def _parts(select: Any, joins: list[Any]) -> tuple[list[Any], list[tuple[str, Any]]]:
    """What holds in every row; and what a LEFT JOIN asks, with the table that it asks it of."""
    where = select.args.get("where")
    always = list(flat(where.this)) if where is not None else []
    outer = any(join.side in ("RIGHT", "FULL") for join in joins)
    right: list[tuple[str, Any]] = []
    for join in joins:
        on = join.args.get("on")
        if on is not None and join.side == "" and join.kind in ("", "INNER", "CROSS") and not outer:
            always += flat(on)
        elif on is not None and join.side == "LEFT" and join.kind in ("", "OUTER"):
            right += [(join.this.alias_or_name, part) for part in flat(on)]
    return ([_first_of(part) for part in always] if not outer else always), right


def _carried(
    joined: str, part: Any, equal: dict[Place, set[Place]], known: dict[Place, Condition]
) -> Iterator[tuple[str, str, Condition]]:
    """What is known of the other side of a LEFT JOIN's equality holds for the rows that it may find."""
    if not _is_link(part):
        return
    ends = [_place(part.this), _place(part.expression)]
    for mine, other in (ends, ends[::-1]):
        found = [known[one] for one in equal.get(other, {other}) if one in known]
        if mine[0] == joined and found:
            yield *mine, found[0]


def _first_of(part: Any) -> Any:
    """USING makes COALESCE(a.x, b.x) of a column x: always a.x, where no join keeps rows of b alone."""
    from sqlglot import exp

    def first(node: Any) -> Any:
        if isinstance(node, exp.Coalesce):
            parts = [node.this, *node.expressions]
            if all(isinstance(one, exp.Column) for one in parts) and len({one.name for one in parts}) == 1:
                return node.this
        return node

    return part.copy().transform(first)


def _classes(links: list[Any]) -> dict[Place, set[Place]]:
    """Columns that are equal in every answer."""
    classes: dict[Place, set[Place]] = {}
    for part in links:
        a, b = _place(part.this), _place(part.expression)
        joined = classes.get(a, {a}) | classes.get(b, {b})
        for one in joined:
            classes[one] = joined
    return classes


def _is_link(part: Any) -> bool:
    from sqlglot import exp

    return isinstance(part, exp.EQ) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Column)


def _place(column: Any) -> Place:
    return column.table, column.name


def flat(node: Any) -> Iterator[Any]:
    """What AND joins."""
    from sqlglot import exp

    node = node.unnest()
    if isinstance(node, exp.And):
        yield from flat(node.this)
        yield from flat(node.expression)
    else:
        yield node


def simple(part: Any) -> Iterator[tuple[Place, Condition]]:
    """Comparisons of a column with constants."""
    from sqlglot import exp

    ops = {exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
    op = ops.get(type(part))
    if op is not None:
        for column, other, way in ((part.this, part.expression, op), (part.expression, part.this, _FLIPPED[op])):
            value = constant(other)
            if isinstance(column, exp.Column) and value is not None:
                yield _place(column), Condition(column.name, way, (value,))
    elif isinstance(part, exp.Between) and isinstance(part.this, exp.Column) and not part.args.get("symmetric"):
        low, high = constant(part.args["low"]), constant(part.args["high"])
        if low is not None and high is not None:
            yield _place(part.this), Condition(part.this.name, ">=", (low,))
            yield _place(part.this), Condition(part.this.name, "<=", (high,))
    elif isinstance(part, exp.In) and isinstance(part.this, exp.Column) and part.expressions:
        values = tuple(constant(one) for one in part.expressions)
        if all(one is not None for one in values) and not part.args.get("query"):
            yield _place(part.this), Condition(part.this.name, "in", values)


def constant(node: Any) -> Any:
    """The value of a constant as Python has it; None for what is none."""
    from sqlglot import exp

    node = node.unnest()
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Neg):
        inner = constant(node.this)
        return -inner if isinstance(inner, int | Decimal | float) and not isinstance(inner, bool) else None
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string else _number(str(node.this))
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string:
        return _of_type(str(node.to.this.value).upper(), str(node.this.this))
    return None


def _number(text: str) -> Any:
    if "e" in text.lower():
        return float(text)
    return int(text) if text.isdigit() else Decimal(text)


def _of_type(kind: str, text: str) -> Any:
    try:
        if kind == "DATE":
            return dt.date.fromisoformat(text)
        if kind in ("TIMESTAMP", "DATETIME", "TIMESTAMPNTZ"):
            return dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return text if kind in ("TEXT", "VARCHAR") else None
