"""Answers of statements: what two servers must return alike, and in what they differ.

Rows are compared as a bag: PostgreSQL promises no order without ORDER BY. Where ORDER BY names columns of the answer,
their sequence is compared, too; rows with equal keys may change places. Floating-point values may differ in their last
digits, because the order of additions is not promised either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Values = tuple[bytes | None, ...]
KEPT = 20_000
"""Number of rows up to which the rows themselves are kept; of longer answers, sums of hashes are compared."""
_FLOATS = (700, 701)
_TOLERANCE = 1e-9
_COARSE_TOLERANCE = 1e-5
Difference = Literal["", "error", "rows", "columns", "values", "order"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What an execution returned.

    Attributes:
        rows: Number of rows returned or changed.
        columns: Names of the columns.
        types: OIDs of their types.
        bag: Sum of the hashes of all rows, modulo 2**64.
        kept: The rows, in their order; empty if there are more than `KEPT`.
        sqlstate: SQLSTATE of the error; empty if there was none.
        message: The server's message for it.
    """

    rows: int = 0
    columns: tuple[str, ...] = ()
    types: tuple[int, ...] = ()
    bag: int = 0
    kept: tuple[Values, ...] = field(default=(), repr=False)
    sqlstate: str = ""
    message: str = ""


def answer_of(rows: Sequence[Values], columns: Sequence[str], types: Sequence[int], changed: int | None) -> Answer:
    """Return the answer with these rows; `changed` is the number of rows that the command tag names."""
    bag = sum(hash(row) for row in rows) % (1 << 64)
    count = changed if changed is not None else len(rows)
    return Answer(count, tuple(columns), tuple(types), bag, tuple(rows) if len(rows) <= KEPT else ())


def difference(old: Answer, new: Answer, keys: Sequence[int] = ()) -> Difference:
    """Return in what two answers differ; empty if they are alike.

    Args:
        old: Answer of the old server.
        new: Answer of the new server.
        keys: Places of the columns by which the statement orders its rows.
    """
    if old.sqlstate or new.sqlstate:
        return "" if old.sqlstate == new.sqlstate else "error"
    if old.rows != new.rows or len(old.columns) != len(new.columns):
        return "rows" if old.rows != new.rows else "columns"
    if old.bag != new.bag and not _alike(old, new):
        return "values"
    is_ordered = not (keys and old.kept and new.kept) or _same_order(old, new, keys)
    return "" if is_ordered else "order"


def _alike(old: Answer, new: Answer) -> bool:
    """Return True if the rows differ in nothing but the last digits of floating-point values."""
    floats = [at for at, kind in enumerate(old.types) if kind in _FLOATS]
    if not floats or not old.kept or not new.kept:
        return False
    pairs = zip(_sorted(old.kept, floats), _sorted(new.kept, floats), strict=True)
    return all(_equal(a, b, old.types) for a, b in pairs)


def _sorted(rows: Sequence[Values], floats: Sequence[int]) -> list[Values]:
    def key(row: Values) -> tuple[object, ...]:
        exact = tuple((value is None, value or b"") for at, value in enumerate(row) if at not in floats)
        rounded = tuple(_rounded(row[at]) for at in floats)
        return (exact, rounded)

    return sorted(rows, key=key)


def _rounded(value: bytes | None) -> float:
    number = float(value) if value is not None else -math.inf
    return math.inf if math.isnan(number) else float(f"{number:.6g}")


def _equal(a: Values, b: Values, types: Sequence[int]) -> bool:
    for left, right, kind in zip(a, b, types, strict=True):
        if left == right:
            continue
        if kind not in _FLOATS or left is None or right is None:
            return False
        tolerance = _TOLERANCE if kind == 701 else _COARSE_TOLERANCE
        if not math.isclose(float(left), float(right), rel_tol=tolerance, abs_tol=tolerance * 1e-3):
            return False
    return True


def _same_order(old: Answer, new: Answer, keys: Sequence[int]) -> bool:
    usable = [at for at in keys if at < len(old.columns) and old.types[at] not in _FLOATS]
    return [[row[at] for at in usable] for row in old.kept] == [[row[at] for at in usable] for row in new.kept]
