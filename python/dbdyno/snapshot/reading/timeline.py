"""Events of an interval over time, as far as snapshots show them, to compare with a change of load.

    for event in events(interval):
        event["at_us"], event["after_us"], event["kind"], event["what"]

If the server records the instant (of a start, a reset, a vacuum), `at_us` is that instant and `after_us` is None.
Otherwise it is only known between which two snapshots the event happened: after `after_us`, not after `at_us`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from dbdyno.base.sections import Row
from dbdyno.base.sql_text import literal
from dbdyno.snapshot.reading.changed_settings import changed_settings
from dbdyno.snapshot.store.folder import Place, relation_of_places
from dbdyno.snapshot.wording import setting_change

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval
    from dbdyno.snapshot.store.folder import Snapshot

KINDS = ("restart", "reset", "setting", "object", "checkpoint", "vacuum", "analyze")
"""Kinds of events, in the order of a chart's lanes."""

STARTED_AGAIN_US = 5_000_000
"""Smallest difference of start times in µs that means a restart: MariaDB reports its start in whole seconds."""

_OBJECTS = (
    ("table", "pg_stat_user_tables", "datid, relid", "schemaname || '.' || relname"),
    ("index", "pg_stat_user_indexes", "datid, indexrelid", "schemaname || '.' || indexrelname"),
)
_VACUUMS = (
    ("vacuum", "last_vacuum", "vacuum of"),
    ("vacuum", "last_autovacuum", "autovacuum of"),
    ("analyze", "last_analyze", "analyze of"),
    ("analyze", "last_autoanalyze", "autoanalyze of"),
)
CHECKPOINTS = {
    "pg_stat_checkpointer": (("num_timed", "timed"), ("num_requested", "requested")),
    "pg_stat_bgwriter": (("checkpoints_timed", "timed"), ("checkpoints_req", "requested")),
}


def events(interval: Interval) -> list[Row]:
    """Return all events, sorted by time.

    Raises:
        EvidenceError: A file of the store cannot be read.
    """
    found: list[Row] = []
    for source in (_starts, _resets, _settings, _objects, _checkpoints, _vacuums):
        found += source(interval)
    return sorted(found, key=lambda one: (one["at_us"], KINDS.index(one["kind"]), one["what"]))


def _event(kind: str, what: str, at_us: int, after_us: int | None = None) -> Row:
    return {"kind": kind, "what": what, "at_us": at_us, "after_us": after_us}


def _starts(interval: Interval) -> Iterator[Row]:
    for before, after in pairwise(interval.chain):
        old, new = (end.facts.get("started_us") for end in (before, after))
        if isinstance(old, int) and isinstance(new, int) and abs(new - old) >= STARTED_AGAIN_US:
            yield _event("restart", "the server was started", new)


def _resets(interval: Interval) -> Iterator[Row]:
    told = set()
    for (scope, value), verdict in interval.verdicts.items():
        if verdict.word in ("ok", "partial", "evicted", "restart") or verdict.at_us is None:
            continue
        if not interval.before.at_ns // 1000 <= verdict.at_us <= interval.after.at_ns // 1000:
            continue
        if (verdict.at_us, verdict.why) not in told:
            told.add((verdict.at_us, verdict.why))
            name = f" {value}" if value is not None and scope not in ("cluster", "clock") else ""
            yield _event("reset", f"{verdict.word}{name}: {verdict.why}", verdict.at_us)


def _settings(interval: Interval) -> Iterator[Row]:
    for before, after in pairwise(interval.chain):
        for name, old, new in changed_settings(before, after, interval.query):
            yield _between("setting", setting_change(name, old, new), before, after)


def _objects(interval: Interval) -> Iterator[Row]:
    """Yield the tables and indexes that a snapshot has and its neighbour does not have."""
    for noun, view, key, name in _OBJECTS:
        having = [one for one in interval.chain if one.file(view) is not None]
        if len(having) < 2:
            continue
        seen = _each(having, view, f"{key}, {name} as name")
        last = len(having) - 1
        for row in interval.query(
            f"""select {key}, arg_max(name, place) as name, min(place) as first, max(place) as last
            from ({seen}) group by all having min(place) > 0 or max(place) < {last} order by name"""
        ):
            if row["first"] > 0:
                ends = having[row["first"] - 1], having[row["first"]]
                yield _between("object", f"{noun} {row['name']} was created", *ends)
            if row["last"] < last:
                ends = having[row["last"]], having[row["last"] + 1]
                yield _between("object", f"{noun} {row['name']} was dropped", *ends)


def _checkpoints(interval: Interval) -> Iterator[Row]:
    for view, columns in CHECKPOINTS.items():
        known = {column.name for column in interval.after.columns(view)}
        if not {name for name, _ in columns} <= known:
            continue
        having = [one for one in interval.chain if one.file(view) is not None]
        sql = ", ".join(f"{name} - lag({name}) over (order by place) as {word}" for name, word in columns)
        for row in interval.query(f"select place, {sql} from ({_each(having, view, '*')}) order by place"):
            words = [f"{row[word]} {word}" for _, word in columns if (row[word] or 0) > 0]
            if words:
                ends = having[row["place"] - 1], having[row["place"]]
                yield _between("checkpoint", f"checkpoints: {', '.join(words)}", *ends)


def _vacuums(interval: Interval) -> Iterator[Row]:
    having = [one for one in interval.chain if one.file("pg_stat_user_tables") is not None]
    known = {column.name for column in interval.after.columns("pg_stat_user_tables")}
    low, high = (end.at_ns // 1000 for end in (interval.before, interval.after))
    for kind, column, words in _VACUUMS:
        if column not in known or not having:
            continue
        for row in interval.query(
            f"""select distinct {column} as seen, schemaname || '.' || relname as name
            from ({_each(having, "pg_stat_user_tables", "*")}) where {column} > {low} and {column} <= {high}"""
        ):
            yield _event(kind, f"{words} {row['name']}", row["seen"])


def _between(kind: str, what: str, before: Snapshot, after: Snapshot) -> Row:
    return _event(kind, what, after.at_ns // 1000, before.at_ns // 1000)


def _each(having: Sequence[Snapshot], view: str, shown: str) -> str:
    """Return SQL for the rows of a view in each of these snapshots, with the snapshot's index as `place`.

    Snapshots in a pack share files, so the rows of several snapshots may be in one place.
    """
    places: dict[Place, list[int]] = {}
    for at, one in enumerate(having):
        place = one.place(view)
        if place is not None:
            places.setdefault(place, []).append(at)
    known = ", ".join(f"({literal(path)}, {inside}, {at})" for (path, inside), of in places.items() for at in of)
    rows = relation_of_places(places, alike=False)
    return f"select m.place, {shown} from {rows} r join (values {known}) m(_file, _in, place) using (_file, _in)"
