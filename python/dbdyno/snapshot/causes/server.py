"""Causes in the server itself: locks, checkpoints, a restart and its cold cache, settings."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.snapshot.causes.change import Cause, Change, rate
from dbdyno.snapshot.interval import Interval
from dbdyno.snapshot.model import moment_us
from dbdyno.snapshot.postgres.sampler import ACTIVITY

_ACTIVE = "kind = 'client backend' and state = 'active'"


def lock_waits(change: Change) -> Iterator[Cause]:
    """Sessions that wait for each other, as sampled."""
    (old, _), (new, waiting) = _locked(change.before), _locked(change.after)
    if new >= 0.3 and new >= 3 * old:
        evidence = f"sessions waiting for a lock {old:.2g} → {new:.2g} on average"
        yield Cause("sessions wait for each other's locks", evidence, waiting, weight=2.8)


def _locked(one: Interval) -> tuple[float, frozenset[int]]:
    """Sessions waiting for a heavyweight lock on average, and their statements."""
    source, looks = one.samples("activity", ACTIVITY)
    if not looks:
        return 0.0, frozenset()
    rows = one.query(
        f"select statement, count(*) as n from {source}"
        f" where {_ACTIVE} and event_type = 'Lock' and {one.inside} group by 1"
    )
    return sum(r["n"] for r in rows) / looks, frozenset(int(r["statement"]) for r in rows if r["statement"] is not None)


def checkpoints(change: Change) -> Iterator[Cause]:
    """Checkpoints that the WAL asks for, not the clock."""
    for view, name in (("pg_stat_bgwriter", "checkpoints_req"), ("pg_stat_checkpointer", "num_requested")):
        old, new = (side.get(name, 0.0) for side in change.totals(view, name))
        if new * change.after.seconds >= 2 and new >= 3 * old:
            old_wal, new_wal = (side.get("wal_bytes", 0.0) for side in change.totals("pg_stat_wal", "wal_bytes"))
            evidence = f"{rate(old, new)}; WAL {old_wal / 1e6:.3g} → {new_wal / 1e6:.3g} MB a second"
            slow = frozenset(n for n, one in change.statements.items() if one.slower())
            yield Cause("checkpoints follow each other: the WAL asks for them", evidence, slow, weight=2.4)


def restarts(change: Change) -> Iterator[Cause]:
    """A restart, and the reads of a cache that is cold since."""
    old, new = change.before.before.facts.get("started_us"), change.after.after.facts.get("started_us")
    if not old or not new or old == new:
        return
    colder = frozenset(
        n for n, one in change.statements.items() if one.per_call("reads")[1] > one.per_call("reads")[0] + 0.1
    )
    reads = rate(*(side.get("blks_read", 0.0) for side in change.totals("pg_stat_database", "blks_read")))
    words = "the server was restarted" + (", its cache was cold" if colder else "")
    yield Cause(words, f"blocks read {reads}", colder, moment_us(new), weight=2.7)


def settings(change: Change) -> Iterator[Cause]:
    """Settings that are not what they were."""
    view = "pg_settings"
    if not change.both(view):
        return
    rows = change.before.query(
        f"select name, a.setting as old, b.setting as new from {change.before.ends(view)[0]} a"
        f" join {change.after.ends(view)[1]} b using (name) where a.setting is distinct from b.setting"
        " and name not in ('transaction_isolation', 'transaction_read_only', 'search_path', 'TimeZone',"
        " 'DateStyle', 'jit', 'application_name') order by name"
    )
    for row in rows:
        yield Cause(f"setting {row['name']}: {row['old']} → {row['new']}", weight=0.4)


RULES = (lock_waits, checkpoints, restarts, settings)
