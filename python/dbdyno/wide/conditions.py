"""Conditions of a SELECT that every row of its answer meets, as comparisons of columns with constants.

They come from WHERE, and from ON of joins that keep only matching rows; equalities between columns carry a constant
across a join. Leaving out table rows that fail them never changes the answer: NULL, which an outer join fills in, fails
every comparison.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from dbdyno.wide.pushdown import Condition

Place = tuple[str, str]
"""Table alias and column name."""
_FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def conditions(select: Any) -> Iterator[tuple[str, str, Condition]]:
    """Yield alias, column and condition for one SELECT, without its subqueries."""
    from sqlglot import exp

    if not isinstance(select, exp.Select):
        return
    joins = select.args.get("joins") or []
    always, right = _parts(select, joins)
    constants = [pair for part in always for pair in simple_comparisons(part)]
    equal = _classes([part for part in always if _is_link(part)])
    for place, condition in constants:
        for alias, name in equal.get(place, {place}):
            yield alias, name, condition
    known = {place: condition for place, condition in constants if condition.op in ("=", "in")}
    for joined, part in right:
        for (alias, name), condition in simple_comparisons(part):
            if alias == joined:
                yield alias, name, condition
        yield from _carry_over(joined, part, equal, known)


def _parts(select: Any, joins: list[Any]) -> tuple[list[Any], list[tuple[str, Any]]]:
    """Return the conditions that hold in every row, and those of each LEFT JOIN with the alias of the joined table."""
    where = select.args.get("where")
    always = list(and_operands(where.this)) if where is not None else []
    outer = any(join.side in ("RIGHT", "FULL") for join in joins)
    right: list[tuple[str, Any]] = []
    for join in joins:
        on = join.args.get("on")
        if on is not None and join.side == "" and join.kind in ("", "INNER", "CROSS") and not outer:
            always += and_operands(on)
        elif on is not None and join.side == "LEFT" and join.kind in ("", "OUTER"):
            right += [(join.this.alias_or_name, part) for part in and_operands(on)]
    return ([_first_of(part) for part in always] if not outer else always), right


def _carry_over(
    joined: str, part: Any, equal: dict[Place, set[Place]], known: dict[Place, Condition]
) -> Iterator[tuple[str, str, Condition]]:
    """Yield conditions on a LEFT JOIN's table that follow from an equality with a column whose value is known."""
    if not _is_link(part):
        return
    ends = [_place(part.this), _place(part.expression)]
    for mine, other in (ends, ends[::-1]):
        found = [known[one] for one in equal.get(other, {other}) if one in known]
        if mine[0] == joined and found:
            yield *mine, found[0]


def _first_of(part: Any) -> Any:
    """Replace COALESCE(a.x, b.x), which USING produces, by a.x; valid if no join keeps unmatched rows of b."""
    from sqlglot import exp

    def first(node: Any) -> Any:
        if isinstance(node, exp.Coalesce):
            parts = [node.this, *node.expressions]
            if all(isinstance(one, exp.Column) for one in parts) and len({one.name for one in parts}) == 1:
                return node.this
        return node

    return part.copy().transform(first)


def _classes(links: list[Any]) -> dict[Place, set[Place]]:
    """Group columns that are equal in every row of the answer."""
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


def and_operands(node: Any) -> Iterator[Any]:
    """Yield the operands of nested ANDs."""
    from sqlglot import exp

    node = node.unnest()
    if isinstance(node, exp.And):
        yield from and_operands(node.this)
        yield from and_operands(node.expression)
    else:
        yield node


def simple_comparisons(part: Any) -> Iterator[tuple[Place, Condition]]:
    """Yield comparisons of a column with constants that are equivalent to the expression, if it has this form."""
    from sqlglot import exp

    ops = {exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
    op = ops.get(type(part))
    if op is not None:
        for column, other, way in ((part.this, part.expression, op), (part.expression, part.this, _FLIPPED[op])):
            value = constant_value(other)
            if isinstance(column, exp.Column) and value is not None:
                yield _place(column), Condition(column.name, way, (value,))
    elif isinstance(part, exp.Between) and isinstance(part.this, exp.Column) and not part.args.get("symmetric"):
        low, high = constant_value(part.args["low"]), constant_value(part.args["high"])
        if low is not None and high is not None:
            yield _place(part.this), Condition(part.this.name, ">=", (low,))
            yield _place(part.this), Condition(part.this.name, "<=", (high,))
    elif isinstance(part, exp.In) and isinstance(part.this, exp.Column) and part.expressions:
        values = tuple(constant_value(one) for one in part.expressions)
        if all(one is not None for one in values) and not part.args.get("query"):
            yield _place(part.this), Condition(part.this.name, "in", values)


def constant_value(node: Any) -> Any:
    """Return the Python value of a constant expression, or None if it is not a constant."""
    from sqlglot import exp

    node = node.unnest()
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Neg):
        inner = constant_value(node.this)
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
