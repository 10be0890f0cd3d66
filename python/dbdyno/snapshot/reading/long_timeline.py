"""Events of a long interval, derived from the cached sums alone, without opening a snapshot.

Starts, crashes and resets come from the verdicts of the sub-intervals; created and dropped tables, indexes and
functions from the rows that appear or disappear; checkpoints, vacuums and settings from what was counted or changed in
between. `timeline` knows the instant of a vacuum, but reads every snapshot.

The events of two neighbouring snapshots are read from their difference, which takes less time than computing the sums
of their hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain as joined
from itertools import groupby

from dbdyno.base.json_types import JsonObject
from dbdyno.base.sections import Row
from dbdyno.base.sql_text import quoted
from dbdyno.snapshot.reading.changed_settings import changed_settings
from dbdyno.snapshot.reading.clock import elapsed_ns
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.timeline import CHECKPOINTS
from dbdyno.snapshot.wording import setting_change

OBJECTS = (
    ("table", "pg_stat_user_tables", ("schemaname", "relname")),
    ("index", "pg_stat_user_indexes", ("schemaname", "indexrelname")),
    ("function", "pg_stat_user_functions", ("schemaname", "funcname")),
)
_CAME = {"table": "was created", "index": "was created", "function": "was called for the first time"}
"""Words for a new object, as in `timeline`; PostgreSQL's statistics list a function only after its first call."""
_WENT = "was dropped"
_KINDS = {"restart": "restart", "crash": "restart", "failover": "restart", "reset": "reset"}
VACUUMS = (
    ("vacuum", "vacuum_count", "vacuum of"),
    ("vacuum", "autovacuum_count", "autovacuum of"),
    ("analyze", "analyze_count", "analyze of"),
    ("analyze", "autoanalyze_count", "autoanalyze of"),
)
MOST = 200
"""Largest number of events for each kind of object: tables, indexes, functions."""
COUNTED_MOST = 20_000
"""Largest number of rows with checkpoints or vacuums; beyond it, only the most recent rows are used."""
DRAWN_MOST = 34
"""Number of events of a kind for which a chart has room; more are combined."""


def long_events(interval: Interval) -> list[Row]:
    """Return the events of an interval, sorted by time, as rows in the form of `timeline.events`.

    The events of cached days are read from the cache.
    """
    cached = [] if _is_pair(interval) else [row for day in interval.sums.days for row in (day.model or {})["events"]]
    found = joined(
        _of_verdicts(interval),
        _of_objects(interval),
        _of_settings(interval),
        _of_checkpoints(interval),
        _of_vacuums(interval),
    )
    ordered = sorted([*cached, *found], key=lambda row: (row["at_us"], row["kind"], row["what"]))
    return list(_once(ordered) if cached else ordered)


def _once(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the events without the second mention of a start or reset, which several sub-intervals may report."""
    seen = set()
    for row in rows:
        if row["kind"] not in _KINDS.values() or row["what"] not in seen:
            seen.add(row["what"])
            yield row


def chart_events(rows: Sequence[Row]) -> list[Row]:
    """Return events for a chart: if there are many of a kind, the events within one span of time are combined."""
    if not rows:
        return []
    first, last = rows[0]["at_us"], rows[-1]["at_us"]
    width = max((last - first) // (DRAWN_MOST - 1), 1)
    made: list[Row] = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        alike = [row for row in rows if row["kind"] == kind]
        step = width if len(alike) > DRAWN_MOST else 1
        for _, group in groupby(alike, key=lambda row: (row["at_us"] - first) // step):
            made.append(_together(list(group)))
    return sorted(made, key=lambda row: (row["at_us"], row["kind"]))


def _together(group: list[Row]) -> Row:
    """Return several events as one, with the words of the first two and the number of the others."""
    words = list(dict.fromkeys(row["what"] for row in group))
    more = f"; and {len(group) - 2} more" if len(group) > 2 else ""
    begun = [row["at_us"] if row["after_us"] is None else row["after_us"] for row in group]
    known = len(group) == 1 and group[0]["after_us"] is None
    return {**group[-1], "what": "; ".join(words[:2]) + more, "after_us": None if known else min(begun)}


def _is_pair(interval: Interval) -> bool:
    """Return True if there is no snapshot between the two ends."""
    return len(interval.chain) == 2


def _parts(interval: Interval) -> Sequence[JsonObject]:
    """Return the sub-intervals outside of cached days."""
    if _is_pair(interval):
        return [interval.compute_once("only part", lambda: _only_part(interval))]
    return [part for chunk in interval.sums.hours for part in interval.sums.parts_of(chunk)]


def _only_part(interval: Interval) -> JsonObject:
    """Return what is known about the only sub-interval of an interval."""
    return {
        "number": interval.after.number,
        "at_us": interval.after.at_ns // 1000,
        "elapsed_ns": elapsed_ns(interval.before, interval.after),
        "verdicts": [
            [scope, value, said.word, said.why, said.at_us] for (scope, value), said in interval.verdicts.items()
        ],
        "settings": changed_settings(interval.before, interval.after, interval.query),
    }


def _rows(interval: Interval, view: str) -> tuple[str, set[str]]:
    """Return an SQL relation with a view's rows by sub-interval outside of cached days, and the names of its columns.

    The relation is empty if the view has no such rows.
    """
    if _is_pair(interval):
        if not interval.has(view):
            return "", set()
        return f"(select {interval.after.number} as part, * from {interval.table(view)})", interval.columns(view)
    source, columns = interval.sums.relation(view, folded=False, chunks=interval.sums.hours)
    return source, {column.name for column in columns}


def _of_verdicts(interval: Interval) -> Iterator[Row]:
    seen = set()
    for part in _parts(interval):
        for _, _, word, why, at_us, *_ in part["verdicts"]:
            if word in _KINDS and why not in seen:
                seen.add(why)
                before = part["at_us"] - part["elapsed_ns"] // 1000
                known = at_us is not None
                yield {
                    "kind": _KINDS[word],
                    "what": why,
                    "at_us": at_us if known else part["at_us"],
                    "after_us": None if known else before,
                }


def _of_objects(interval: Interval) -> Iterator[Row]:
    """Yield an event for each created or dropped table, index and function, at most `MOST` of a kind."""
    parts = {part["number"]: part for part in _parts(interval)}
    for kind, view, names in OBJECTS:
        source, known = _rows(interval, view)
        if not source or not set(names) <= known:
            continue
        shown = (
            ["datname", *names]
            if len(interval.after.facts.get("databases") or ()) > 1 and "datname" in known
            else names
        )
        named = " || '.' || ".join(quoted(name) for name in shown)
        rows = interval.query(
            f"select part, {named} as name, life from {source} where life in ('new', 'gone')"
            f" and verdict in ('ok', 'partial') order by part, 2 limit {MOST}"
        )
        for row in rows:
            part = parts.get(row["part"])
            if part is not None:
                yield _within(part, "object", f"{kind} {row['name']} {_CAME[kind] if row['life'] == 'new' else _WENT}")


def _of_settings(interval: Interval) -> Iterator[Row]:
    for part in _parts(interval):
        for name, old, new in part["settings"]:
            yield _within(part, "setting", setting_change(name, old, new))


def _of_checkpoints(interval: Interval) -> Iterator[Row]:
    for view, counted in CHECKPOINTS.items():
        shown = dict(counted)
        for part, row in _counted(interval, view, list(shown), ""):
            words = ", ".join(f"{row[column]} {word}" for column, word in shown.items() if row[column])
            yield _within(part, "checkpoint", f"checkpoints: {words}")


def _of_vacuums(interval: Interval) -> Iterator[Row]:
    named = "schemaname || '.' || relname as name"
    for part, row in _counted(interval, "pg_stat_user_tables", [column for _, column, _ in VACUUMS], named):
        for kind, column, words in VACUUMS:
            if row[column]:
                yield _within(part, kind, f"{words} {row['name']}")


def _counted(interval: Interval, view: str, counters: list[str], more: str) -> Iterator[tuple[Row, Row]]:
    """Yield the rows of a view in which one of these counters grew, each with its sub-interval.

    Yields nothing if the view lacks one of the counters.
    """
    source, known = _rows(interval, view)
    if not source or not set(counters) <= known:
        return
    shown = ", ".join(["part", *map(quoted, counters), *([more] if more else [])])
    grew = " or ".join(f"{quoted(name)} > 0" for name in counters)
    parts = {part["number"]: part for part in _parts(interval)}
    for row in interval.query(f"select {shown} from {source} where {grew} order by part desc limit {COUNTED_MOST}"):
        if row["part"] in parts:
            yield parts[row["part"]], row


def _within(part: Row, kind: str, what: str) -> Row:
    """Return an event that is known to have happened within this sub-interval."""
    return {"kind": kind, "what": what, "at_us": part["at_us"], "after_us": part["at_us"] - part["elapsed_ns"] // 1000}
