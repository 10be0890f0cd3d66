"""Columns by which a statement looks up rows, as far as its text shows."""

from __future__ import annotations

import re

_EQUAL = re.compile(r"(?<!\w)(?:\w+\.)?\"?(\w+)\"?\s*(?<![<>!])=\s*(?:any\s*\(\s*)?\$\d+", re.I)
_AGGREGATE = re.compile(r"\b(count|sum|avg|min|max|string_agg|array_agg|group\s+by)\b", re.I)
FEW = 0.01
"""Largest share of a table's rows per column value for which an index helps a statement with an aggregate."""
COMMONEST = 0.05
"""Largest share of the most common value for a column to count as selective."""


def lookup_columns(text: str) -> frozenset[str]:
    """Return the lower-case columns that the condition compares with one value; empty if it has an OR."""
    parts = re.split(r"\bwhere\b", " ".join(text.split()), maxsplit=1, flags=re.I)
    if len(parts) < 2 or re.search(r"\bor\b", parts[1], re.I):
        return frozenset()
    return frozenset(name.lower() for name in _EQUAL.findall(parts[1]))


def has_aggregate(text: str) -> bool:
    """Return True if the number of rows returned does not show how many rows were needed."""
    return _AGGREGATE.search(text) is not None


def is_selective(values: float, commonest: float) -> bool:
    """Return True if few rows have the same value, for a column with `values` distinct values.

    `commonest` is the share of the most common value.
    """
    return values * FEW >= 1 and commonest <= COMMONEST
