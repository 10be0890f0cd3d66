"""The metrics of a sub-interval, for comparing two periods and drawing curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbdyno.base.json_types import TableRow
from dbdyno.snapshot.engines.metric import Metric
from dbdyno.snapshot.engines.postgres.sampler import ACTIVITY
from dbdyno.snapshot.engines.postgres.section_helpers import column_or_null, own_transactions_of
from dbdyno.snapshot.engines.view import LOSSES
from dbdyno.snapshot.reading.difference import union_columns
from dbdyno.snapshot.reading.ends import Ends
from dbdyno.snapshot.sessions.samples import SEEN, WHOLE
from dbdyno.snapshot.store.folder import relation_of_places

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval
    from dbdyno.snapshot.reading.sums.batch import Batch

_DATABASE = (
    (Metric("tps", "transactions", "per_s", True), "sum(xact_commit)"),
    (Metric("rollbacks", "rollbacks", "per_s", False), "sum(xact_rollback)"),
    (Metric("aas", "active sessions", "aas", False), "sum(active_time) / 1e3"),
    (Metric("blocks", "blocks asked for", "per_s"), "sum(blks_hit + blks_read)"),
    (Metric("reads", "blocks read", "per_s", False), "sum(blks_read)"),
    (Metric("rows", "rows returned and fetched", "per_s"), "sum(tup_returned + tup_fetched)"),
    (Metric("changes", "rows changed", "per_s"), "sum(tup_inserted + tup_updated + tup_deleted)"),
    (Metric("temp", "temporary files", "bytes_per_s", False), "sum(temp_bytes)"),
    (Metric("deadlocks", "deadlocks", "per_s", False), "sum(deadlocks)"),
)
_WAITING = Metric("waiting", "sessions that wait", "aas", False)


def metrics(interval: Interval) -> list[tuple[Metric, float | None]]:
    """Return each metric with its value over the interval; None if it is not known."""
    return _of_part(interval, _Sums(interval, [interval]), interval, 0)


def part_metrics(batch: Batch) -> list[list[tuple[Metric, float | None]]]:
    """Return the metrics for each pair of snapshots in a batch, using few queries."""
    sums = _Sums(batch, batch.pairs)
    return [_of_part(batch, sums, pair, pair.after.number) for pair in batch.pairs]


class _Sums:
    """The sums from which metrics are computed, with one row per sub-interval."""

    def __init__(self, source: Interval | Batch, pairs: Sequence[Ends]) -> None:
        self.part = "part" if source.part_keys else "0"
        self.databases = self._read(source, "pg_stat_database", _database_sql(source))
        self.statements = self._read(source, "pg_stat_statements", _statements_sql(source))
        self.seen = _seen(source, pairs)

    def _read(self, source: Interval | Batch, view: str, sql: str) -> dict[int, TableRow]:
        if not source.has(view):
            return {}
        rows = source.query(f"select {self.part} as part, {sql} group by 1", view)
        return {int(row["part"]): row for row in rows}


def _database_sql(source: Interval | Batch) -> str:
    has = source.columns("pg_stat_database") if source.has("pg_stat_database") else set()
    parts = [sql if "active_time" not in sql or "active_time" in has else "null" for _, sql in _DATABASE]
    return (
        f"{', '.join(f'{sql} as m{at}' for at, sql in enumerate(parts))},"
        " sum(blks_hit) / nullif(sum(blks_hit + blks_read), 0) as hitrate,"
        " bool_and(verdict = 'ok' or datid = 0) as whole from pg_stat_database"
    )


def _statements_sql(source: Interval | Batch) -> str:
    view = "pg_stat_statements"
    has = source.columns(view) if source.has(view) else set()
    name = "total_exec_time" if "total_exec_time" in has else "total_time"
    top = f"where {column_or_null('toplevel', has)} is not false" if "toplevel" in has else ""
    return (
        f"sum(calls) as calls, sum({name}) * 1e6 as time,"
        f" bool_and(verdict in ('ok', 'evicted')) as whole from {view} {top}"
    )


def _of_part(source: Interval | Batch, sums: _Sums, pair: Ends, part: int) -> list[tuple[Metric, float | None]]:
    """Return the metrics of one sub-interval; if it has no row, nothing changed in it."""
    found: list[tuple[Metric, float | None]] = []
    if pair.has("pg_stat_database"):
        timed = "active_time" in pair.columns("pg_stat_database")
        row = sums.databases.get(part) or {"whole": True, "hitrate": None}
        own = sum(own_transactions_of([pair.before, pair.after]).values())
        for at, (metric, sql) in enumerate(_DATABASE):
            value = row.get(f"m{at}", 0 if timed or "active_time" not in sql else None) if row["whole"] else None
            if value is not None and metric.name == "tps":
                value = value - own if value >= own else value
            found.append((metric, None if value is None else float(value) / pair.seconds))
        found.append((Metric("hitrate", "hit rate", "ratio", True), row["hitrate"] if row["whole"] else None))
    found += _log(pair) + _statements(sums, pair, part)
    looks = pair.after.looks
    if not looks:
        return found
    active, waiting = sums.seen.get(part, (0, 0))
    whole = looks * WHOLE
    found = [(metric, active / whole if metric.name == "aas" else value) for metric, value in found]
    return [*found, (_WAITING, waiting / whole)]


def _log(pair: Ends) -> list[tuple[Metric, float | None]]:
    old, new = (end.facts.get("wal_bytes") for end in (pair.before, pair.after))
    value = None
    if old is not None and new is not None and pair.verdict("cluster").word != "failover":
        value = (new - old) / pair.seconds
    return [(Metric("wal", "WAL written", "bytes_per_s"), value)]


def _statements(sums: _Sums, pair: Ends, part: int) -> list[tuple[Metric, float | None]]:
    if not pair.has("pg_stat_statements"):
        return []
    row = sums.statements.get(part)
    if row is None or not row["whole"] or not row["calls"] or pair.verdict("statements").word in LOSSES:
        return [(Metric("mean", "mean time of a statement", "ns", False), None)]
    return [
        (Metric("mean", "mean time of a statement", "ns", False), row["time"] / row["calls"]),
        (Metric("calls", "statements", "per_s"), row["calls"] / pair.seconds),
    ]


def _seen(source: Interval | Batch, pairs: Sequence[Ends]) -> dict[int, tuple[int, int]]:
    """Return how often looks saw active sessions, and waiting ones, by sub-interval, in millionths of a look.

    Active sessions are sampled too, because the server adds a statement's time only when it ends: its sums show no
    active session before that, and then more sessions than were active.
    """
    numbers = {
        place: pair.after.number
        for pair in pairs
        if (place := pair.after.place("activity")) and pair.after.problem("activity") is None
    }
    if not numbers:
        return {}
    rows = source.query(
        f"""select _file, _in,
          coalesce(sum({SEEN}) filter (where state in ('active', 'fastpath function call')), 0)::bigint as active,
          coalesce(sum({SEEN}) filter (where state = 'active' and event is not null and kind = 'client backend'), 0)
            ::bigint as waiting
        from (from {union_columns(ACTIVITY)} union all by name from {relation_of_places(numbers, alike=False)})
        where kind in ('client backend', 'parallel worker') and application is distinct from 'dbdyno snap'
        group by 1, 2"""
    )
    places = {(row["_file"], row["_in"]): (row["active"], row["waiting"]) for row in rows}
    counts = {number: places.get(place, (0, 0)) for place, number in numbers.items()}
    if source.part_keys:
        return counts
    return {0: (sum(one for one, _ in counts.values()), sum(one for _, one in counts.values()))}
