"""Times in the sentences and evidence of why, as pages write them."""

from __future__ import annotations

from dbdyno.stats.words import duration as plain


def duration(ns: float) -> str:
    """Nanoseconds with three digits and a fitting unit.

    >>> duration(12_300)
    '12.3 µs'
    """
    return plain(ns).replace(" us", " µs")
