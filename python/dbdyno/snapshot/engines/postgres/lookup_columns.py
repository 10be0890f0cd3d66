"""Which columns a statement looks rows up by, as far as its text says."""

from __future__ import annotations

import re

_EQUAL = re.compile(r"(?<!\w)(?:\w+\.)?\"?(\w+)\"?\s*(?<![<>!])=\s*(?:any\s*\(\s*)?\$\d+", re.I)
_AGGREGATE = re.compile(r"\b(count|sum|avg|min|max|string_agg|array_agg|group\s+by)\b", re.I)
FEW = 0.01
"""The share of a table's rows that a value of a column has, for an index to be worth it under an aggregate."""
COMMONEST = 0.05
"""The share of the commonest value, at most."""


def sought(text: str) -> frozenset[str]:
    """Columns that the condition compares with one value, in small letters; none where alternatives are asked for."""
    parts = re.split(r"\bwhere\b", " ".join(text.split()), maxsplit=1, flags=re.I)
    if len(parts) < 2 or re.search(r"\bor\b", parts[1], re.I):
        return frozenset()
    return frozenset(name.lower() for name in _EQUAL.findall(parts[1]))


def aggregates(text: str) -> bool:
    """Whether what it returns does not say how many rows it needed."""
    return _AGGREGATE.search(text) is not None


def is_selective(values: float, commonest: float) -> bool:
    """Whether few rows have each value of a column of so many values."""
    return values * FEW >= 1 and commonest <= COMMONEST
