"""Times and numbers in the sentences and evidence of `why`, as pages write them."""

from __future__ import annotations

from dbdyno.stats.wording import duration as plain


def duration(ns: float) -> str:
    """Return nanoseconds as text with three significant digits and a suitable unit.

    >>> duration(12_300)
    '12.3 µs'
    """
    return plain(ns).replace(" us", " µs")


def number(value: float) -> str:
    """Return a count as text with three significant digits, or as a whole number from 100 on."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def plain_name(table: str) -> str:
    """Return the table `schema/table` as SQL writes it: `table` if the schema is public, else `schema.table`."""
    schema, _, name = table.partition("/")
    return name if schema == "public" else f"{schema}.{name}"
