"""The metrics of a sub-interval: what two periods are compared by, and curves are drawn of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.snapshot.postgres.parts import own_transactions, present
from dbdyno.snapshot.postgres.sampler import ACTIVITY
from dbdyno.snapshot.series import Metric

if TYPE_CHECKING:
    from dbdyno.snapshot.interval import Interval

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
    """Each metric's value; None where it is not known."""
    found: list[tuple[Metric, float | None]] = []
    seconds = interval.seconds
    view = "pg_stat_database"
    if interval.has(view):
        has = interval.columns(view)
        parts = [sql if "active_time" not in sql or "active_time" in has else "null" for _, sql in _DATABASE]
        row = interval.query(
            f"select {', '.join(f'{sql} as m{at}' for at, sql in enumerate(parts))},"
            " sum(blks_hit) / nullif(sum(blks_hit + blks_read), 0) as hitrate,"
            " bool_and(verdict = 'ok' or datid = 0) as whole from pg_stat_database",
            view,
        )[0]
        own = sum(own_transactions(interval).values())
        for at, (metric, _) in enumerate(_DATABASE):
            value = row[f"m{at}"] if row["whole"] else None
            if value is not None and metric.name == "tps":
                value = value - own if value >= own else value
            found.append((metric, None if value is None else float(value) / seconds))
        hits = row["hitrate"] if row["whole"] else None
        found.append((Metric("hitrate", "hit rate", "ratio", True), hits))
    found += _log(interval) + _statements(interval)
    sampled = _sampled(interval)
    found = [(metric, sampled.get(metric.name, value)) for metric, value in found]
    return [*found, (_WAITING, sampled["waiting"])] if sampled else found


def _log(interval: Interval) -> list[tuple[Metric, float | None]]:
    old, new = (end.facts.get("wal_bytes") for end in (interval.before, interval.after))
    value = None
    if old is not None and new is not None and interval.verdict("cluster").word != "failover":
        value = (new - old) / interval.seconds
    return [(Metric("wal", "WAL written", "bytes_per_s"), value)]


def _statements(interval: Interval) -> list[tuple[Metric, float | None]]:
    view = "pg_stat_statements"
    if not interval.has(view):
        return []
    has = interval.columns(view)
    name = "total_exec_time" if "total_exec_time" in has else "total_time"
    top = f"where {present('toplevel', has)} is not false" if "toplevel" in has else ""
    row = interval.query(
        f"select sum(calls) as calls, sum({name}) * 1e6 as time,"
        f" bool_and(verdict in ('ok', 'evicted')) as whole from {view} {top}",
        view,
    )[0]
    if not row["whole"] or not row["calls"]:
        return [(Metric("mean", "mean time of a statement", "ns", False), None)]
    return [
        (Metric("mean", "mean time of a statement", "ns", False), row["time"] / row["calls"]),
        (Metric("calls", "statements", "per_s"), row["calls"] / interval.seconds),
    ]


def _sampled(interval: Interval) -> dict[str, float]:
    """What the looks say of the sessions. Active sessions too: the server adds a statement's time when it ends, so
    that its sums show more sessions than there were, and before that none."""
    source, looks = interval.samples("activity", ACTIVITY)
    if not looks:
        return {}
    seen = interval.query(
        f"""select count(*) filter (where state in ('active', 'fastpath function call')) as active,
          count(*) filter (where state = 'active' and event is not null and kind = 'client backend') as waiting
        from {source} where kind in ('client backend', 'parallel worker') and application is distinct from 'dbdyno snap'
        """
    )[0]
    return {"aas": seen["active"] / looks, "waiting": seen["waiting"] / looks}
