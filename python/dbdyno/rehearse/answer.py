"""Answers of statements: what must be equal on both servers, and how two answers differ.

Rows are compared as a bag (a multiset), because PostgreSQL promises no order without ORDER BY. If ORDER BY names
columns of the answer, their sequence is compared, too; rows with equal keys may change places. If LIMIT or OFFSET cuts
the answer among rows with equal keys, only the keys of these rows are compared. The same applies to DISTINCT ON.
Floating-point values may differ in their last digits, because the order of additions is not promised either.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

Values = tuple[bytes | None, ...]
ROWS_KEPT = 20_000
"""Maximum number of rows that are kept; longer answers are compared by sums of hashes."""
_FLOATS = (700, 701)
_FRACTION = 1 << 64
_TOLERANCE = 1e-9
_COARSE_TOLERANCE = 1e-5
Difference = Literal["", "error", "rows", "columns", "values", "order"]


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of one execution.

    Attributes:
        rows: Number of rows returned or changed.
        columns: Names of the columns.
        types: OIDs of their types.
        bag: Sum of the hashes of all rows, modulo 2**64.
        kept: The rows, in their order; empty if there are more than `ROWS_KEPT`.
        exact: The bag without floating-point values, where the rows are not kept; 0 if there are none.
        sums: Weighted sum and sum of the magnitudes of each floating-point column, where the rows are not kept.
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
    exact: int = 0
    sums: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class DeterminedParts:
    """Parts of an answer that are determined by the statement, and must therefore be equal on both servers.

    Attributes:
        keys: Indexes of the columns by which the statement orders its rows.
        cuts_begin: True if OFFSET leaves out rows before the answer.
        cuts_end: True if LIMIT leaves out rows after it.
        keys_only: True if only the keys are determined, as with DISTINCT ON.
    """

    keys: tuple[int, ...] = ()
    cuts_begin: bool = False
    cuts_end: bool = False
    keys_only: bool = False


def answer_of(rows: Sequence[Values], columns: Sequence[str], types: Sequence[int], changed: int | None) -> Answer:
    """Return the answer with these rows; `changed` is the number of changed rows from the command tag."""
    bag = sum(hash(row) for row in rows) % (1 << 64)
    count = changed if changed is not None else len(rows)
    floats = [at for at, kind in enumerate(types) if kind in _FLOATS]
    if len(rows) <= ROWS_KEPT or not floats:
        return Answer(count, tuple(columns), tuple(types), bag, tuple(rows) if len(rows) <= ROWS_KEPT else ())
    exact, sums = _sums(rows, floats)
    return Answer(count, tuple(columns), tuple(types), bag, exact=exact, sums=sums)


def _sums(rows: Sequence[Values], floats: Sequence[int]) -> tuple[int, tuple[tuple[float, float], ...]]:
    """Return a bag of the exact values and, for each floating-point column, its weighted sum and sum of magnitudes.

    The weights come from the exact values of the row, so that the sum changes if two rows swap their values.
    """
    exact = 0
    terms: list[list[float]] = [[] for _ in floats]
    for row in rows:
        numbers = {at: value for at in floats if (value := _finite(row[at])) is not None}
        hashed = hash(tuple(b"" if at in numbers else value for at, value in enumerate(row))) % _FRACTION
        exact = (exact + hashed) % _FRACTION
        for own, at in zip(terms, floats, strict=True):
            own.append(numbers.get(at, 0.0) * (0.5 + hashed / _FRACTION))
    return exact, tuple((math.fsum(own), math.fsum(map(abs, own))) for own in terms)


def _finite(value: bytes | None) -> float | None:
    number = float(value) if value is not None else math.nan
    return number if math.isfinite(number) else None


def difference(old: Answer, new: Answer, by: DeterminedParts = DeterminedParts()) -> Difference:
    """Describe how two answers differ in the parts that the statement determines; empty if those are equal."""
    if old.sqlstate or new.sqlstate:
        return "" if old.sqlstate == new.sqlstate else "error"
    if old.rows != new.rows or len(old.columns) != len(new.columns):
        return "rows" if old.rows != new.rows else "columns"
    is_ordered = not (by.keys and old.kept and new.kept) or _same_order(old, new, by.keys)
    if by.cuts_begin or by.cuts_end or by.keys_only:
        has_values = not (old.kept and new.kept) or _same_determined(old, new, by, is_ordered=is_ordered)
    else:
        has_values = old.bag == new.bag or _alike(old, new)
    if not has_values:
        return "values"
    return "" if is_ordered else "order"


def _same_determined(old: Answer, new: Answer, by: DeterminedParts, *, is_ordered: bool) -> bool:
    """Return True if two partly determined answers have equal keys, and equal rows where rows are determined."""
    if not is_ordered:
        return _same_keys(old, new, by.keys)
    return by.keys_only or _same_inside(old, new, by)


def _same_keys(old: Answer, new: Answer, keys: Sequence[int]) -> bool:
    """Return True if both answers have the same keys in any order."""
    usable = _usable(old, keys)
    return Counter(_pick(old, usable)) == Counter(_pick(new, usable))


def _same_inside(old: Answer, new: Answer, by: DeterminedParts) -> bool:
    """Return True if the rows are equal, ignoring rows whose keys equal those of a row at an end that was cut."""
    usable = _usable(old, by.keys)
    keys = _pick(old, usable)
    cut = {keys[0]} if by.cuts_begin else set()
    cut |= {keys[-1]} if by.cuts_end else set()
    inside = [
        replace(one, kept=tuple(row for row, key in zip(one.kept, _pick(one, usable), strict=True) if key not in cut))
        for one in (old, new)
    ]
    a, b = (Counter(one.kept) for one in inside)
    return a == b or _alike(*inside)


def _usable(answer: Answer, keys: Sequence[int]) -> list[int]:
    """Return the sort keys before the first floating-point one; later keys only order rows with equal values of it."""
    known = [at for at in keys if at < len(answer.columns)]
    return list(itertools.takewhile(lambda at: answer.types[at] not in _FLOATS, known))


def _pick(answer: Answer, places: Sequence[int]) -> list[Values]:
    return [tuple(row[at] for at in places) for row in answer.kept]


def _alike(old: Answer, new: Answer) -> bool:
    """Return True if the rows differ at most in the last digits of floating-point values."""
    floats = [at for at, kind in enumerate(old.types) if kind in _FLOATS]
    if old.sums and new.sums and old.types == new.types:
        pairs = zip(floats, old.sums, new.sums, strict=True)
        return old.exact == new.exact and all(_same_sum(a, b, old.types[at]) for at, a, b in pairs)
    if not floats or not old.kept or not new.kept:
        return False
    rows = zip(_sort_rows(old.kept, floats), _sort_rows(new.kept, floats), strict=True)
    return all(_equal(a, b, old.types) for a, b in rows)


def _same_sum(old: tuple[float, float], new: tuple[float, float], kind: int) -> bool:
    tolerance = _TOLERANCE if kind == 701 else _COARSE_TOLERANCE
    return abs(old[0] - new[0]) <= tolerance * max(old[1], new[1])


def _sort_rows(rows: Sequence[Values], floats: Sequence[int]) -> list[Values]:
    def key(row: Values) -> tuple[object, ...]:
        exact = tuple((value is None, value or b"") for at, value in enumerate(row) if at not in floats)
        rounded = tuple(_sort_number(row[at]) for at in floats)
        return (exact, rounded)

    return sorted(rows, key=key)


def _sort_number(value: bytes | None) -> float:
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
    usable = _usable(old, keys)
    return _pick(old, usable) == _pick(new, usable)
