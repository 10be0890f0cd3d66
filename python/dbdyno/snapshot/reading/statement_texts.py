"""The stored texts of statements."""

from __future__ import annotations

from dbdyno.snapshot.reading.interval import Interval

KEYS = {"postgres": "queryid", "mariadb": "DIGEST", "oracle": "sql_id"}
"""The column that identifies a statement, by engine."""


def statement_texts(interval: Interval) -> dict[str, str]:
    """Return the texts in the last snapshot by identifier; empty if no texts were stored."""
    key = KEYS.get(interval.after.engine)
    if key is None or interval.after.file("statement_texts") is None:
        return {}
    rows = interval.query(f"select {key} as key, query from {interval.ends('statement_texts')[1]}")
    return {str(row["key"]): row["query"] or "" for row in rows}
