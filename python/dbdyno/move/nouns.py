"""Helper that writes a number together with its noun."""

from __future__ import annotations


def with_noun(number: int, noun: str) -> str:
    """Return the number with thousands separators and its noun, in the plural unless it is 1: `1 row`, `2,000 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
