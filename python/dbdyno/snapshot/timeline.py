"""Events on the clock of an interval, as far as the snapshots tell: what to hold a change of load against.

    for event in events(interval):
        event["at_us"], event["after_us"], event["kind"], event["what"]

Where the server keeps the instant (a start, a reset, a vacuum) `at_us` is it and `after_us` is None. Otherwise all
that is known is between which two snapshots it was: after `after_us`, not after `at_us`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dbdyno.snapshot.model import Row
from dbdyno.snapshot.parquet import literal

if TYPE_CHECKING:
    from dbdyno.snapshot.interval import Interval
    from dbdyno.snapshot.store import Snapshot

KINDS = ("restart", "reset", "setting", "object", "checkpoint", "vacuum", "analyze")
"""What is told, in the order of a figure's lanes."""

STARTED_AGAIN_US = 5_000_000
"""MariaDB tells its start in whole seconds: a difference below this is none."""

_OWN_SETTINGS = frozenset(
    (
        "transaction_isolation",
        "transaction_read_only",
        "search_path",
        "TimeZone",
        "DateStyle",
        "jit",
        "application_name",
    )
)
_SETTINGS = {"pg_settings": "setting", "global_variables": "value"}
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
_CHECKPOINTS = {
    "pg_stat_checkpointer": (("num_timed", "timed"), ("num_requested", "requested")),
    "pg_stat_bgwriter": (("checkpoints_timed", "timed"), ("checkpoints_req", "requested")),
}


def events(interval: Interval) -> list[Row]:
    """All events by their time. Raises `EvidenceError` where a file of the store cannot be read."""
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
        for view, value in _SETTINGS.items():
            old, new = before.file(view), after.file(view)
            if old is None or new is None or old == new:
                continue
            for row in interval.query(
                f"""select coalesce(a.name, b.name) as name, a.{value} as old, b.{value} as new
                from {_read([old])} a full join {_read([new])} b using (name)
                where a.{value} is distinct from b.{value} order by 1"""
            ):
                if row["name"] not in _OWN_SETTINGS:
                    yield _between("setting", f"{row['name']}: {row['old']} → {row['new']}", before, after)


def _objects(interval: Interval) -> Iterator[Row]:
    """Tables and indexes that a snapshot has and its neighbour has not."""
    chain = interval.chain
    for noun, view, key, name in _OBJECTS:
        having = [one for one in chain if one.file(view) is not None]
        if len(having) < 2:
            continue
        seen = " union all ".join(
            f"select {at} as place, {key}, {name} as name from {_read([one.file(view)])}"
            for at, one in enumerate(having)
        )
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
    for view, columns in _CHECKPOINTS.items():
        known = {column.name for column in interval.after.columns(view)}
        if not {name for name, _ in columns} <= known:
            continue
        for before, after in pairwise(interval.chain):
            ends = before.file(view), after.file(view)
            if None in ends or ends[0] == ends[1]:
                continue
            sql = ", ".join(f"b.{name} - a.{name} as {word}" for name, word in columns)
            for row in interval.query(f"select {sql} from {_read([ends[0]])} a, {_read([ends[1]])} b"):
                words = [f"{row[word]} {word}" for _, word in columns if (row[word] or 0) > 0]
                if words:
                    yield _between("checkpoint", f"checkpoints: {', '.join(words)}", before, after)


def _vacuums(interval: Interval) -> Iterator[Row]:
    files = [path for one in interval.chain if (path := one.file("pg_stat_user_tables")) is not None]
    known = {column.name for column in interval.after.columns("pg_stat_user_tables")}
    low, high = (end.at_ns // 1000 for end in (interval.before, interval.after))
    for kind, column, words in _VACUUMS:
        if column not in known or not files:
            continue
        for row in interval.query(
            f"""select distinct {column} as at, schemaname || '.' || relname as name from {_read(files)}
            where {column} > {low} and {column} <= {high}"""
        ):
            yield _event(kind, f"{words} {row['name']}", row["at"])


def _between(kind: str, what: str, before: Snapshot, after: Snapshot) -> Row:
    return _event(kind, what, after.at_ns // 1000, before.at_ns // 1000)


def _read(files: list[Any]) -> str:
    return f"read_parquet([{', '.join(literal(str(path)) for path in dict.fromkeys(files))}], union_by_name=true)"
