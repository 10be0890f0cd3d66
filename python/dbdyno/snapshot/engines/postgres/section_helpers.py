"""Helpers that the sections of PostgreSQL's report share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbdyno.base.sections import MissingMeasurement, missing_measurement
from dbdyno.base.sql_text import quoted

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval
    from dbdyno.snapshot.store.folder import Snapshot


JIT_COUNTS = {
    "functions": "functions",
    "inlining_count": "inlined",
    "optimization_count": "optimized",
    "emission_count": "emitted",
    "deform_count": "deformed",
}
"""Names of pg_stat_statements columns without the prefix `jit_`, and the names that the report uses."""
JIT_TIMES = ("generation", "inlining", "optimization", "emission", "deform")


def column_or_null(name: str, has: set[str], *, at: str = "") -> str:
    """Return SQL for a column if both ends have it, otherwise NULL; `at` is its relation's alias and a dot."""
    return at + quoted(name) if name in has else "null::double"


def setting(interval: Interval, name: str) -> str | None:
    """Return a setting's value if it is the same at both ends; None if it changed or is not known."""
    if not interval.has("pg_settings"):
        return None
    old, new = interval.compute_once("settings", lambda: _settings(interval))
    return old.get(name) if old.get(name) == new.get(name) else None


def _settings(interval: Interval) -> list[dict[str, str]]:
    return [dict(interval.peek("pg_settings", end, "name", "setting")) for end in (0, 1)]


def missing_timing(interval: Interval, what: str) -> MissingMeasurement | None:
    """Return an entry on what is not measured because reads and writes are not timed; None if they are timed."""
    if setting(interval, "track_io_timing") == "on":
        return None
    return missing_measurement(what, "track_io_timing is off", "track_io_timing = on")


def own_transactions(interval: Interval) -> dict[str, int]:
    """Return the number of dbdyno's transactions that each database counted between the two reads."""
    return interval.compute_once("own transactions", lambda: own_transactions_of(interval.chain))


def own_transactions_of(chain: Sequence[Snapshot]) -> dict[str, int]:
    """Return the number of dbdyno's transactions that each database counted between the first and the last snapshot."""
    total: dict[str, int] = {}
    for index, one in enumerate(chain):
        cost = one.cost.get("own_transactions") or {}
        for when, skipped in (("before", index == 0), ("after", index == len(chain) - 1)):
            for name, number in ({} if skipped else cost.get(when) or {}).items():
                total[name] = total.get(name, 0) + int(number)
        if index:
            name = str(one.steady_facts.get("database"))
            total[name] = total.get(name, 0) + one.looks
    return total


def relation_name(alias: str = "", database: bool = False) -> str:
    """Return SQL for schema.table without the schema public; with `database`, the database comes first."""
    at = f"{alias}." if alias else ""
    plain = f"case when {at}schemaname = 'public' then {at}relname else {at}schemaname || '.' || {at}relname end"
    return f"{at}datname || ': ' || {plain}" if database else plain


def has_several_databases(interval: Interval) -> bool:
    """Return True if objects of more than one database were read."""
    return len(interval.after.facts.get("databases") or ()) > 1
