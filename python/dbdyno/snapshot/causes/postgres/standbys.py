"""Rules that find causes in standbys: commits that wait for replay, and a standby that falls behind."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.base.sections import Row
from dbdyno.snapshot.causes.change import Cause, Change
from dbdyno.snapshot.causes.postgres.sampled_activity import average_sessions
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.wording import duration_text

LEAST_WAITING, LEAST_FACTOR = 0.1, 3.0
"""Smallest average number of sessions waiting for a standby, and smallest factor by which it must have grown."""
LAG_INCREASE_S = 5.0
"""Increase of the replay lag in seconds at which a standby counts as having fallen behind."""
_VIEW = "pg_stat_replication"


def waits_for_standbys(change: Change) -> Iterator[Cause]:
    """Yield a cause if sampled sessions wait for a standby at commit (SyncRep), with the standby that lags most."""
    old, new = (average_sessions(one, "event = 'SyncRep'") for one in (change.before, change.after))
    if new < LEAST_WAITING or new < LEAST_FACTOR * old:
        return
    said = [f"sessions waiting for a standby {old:.2g} → {new:.2g} on average", _how_far(change)]
    yield Cause("commits wait for a standby", "; ".join(filter(None, said)), weight=2.95)


def late_standbys(change: Change) -> Iterator[Cause]:
    """Yield a cause for each standby whose replay fell behind, even if no commit waits: its reads are stale."""
    was = {_name(row): row for row in _rows(change.before)}
    for row in _rows(change.after):
        old, new = _lag_s(was.get(_name(row), {})), _lag_s(row)
        if new - old >= LAG_INCREASE_S:
            words = f"standby {_name(row)} falls behind"
            yield Cause(
                words,
                f"replay lag {duration_text(1000 * old)} → {duration_text(1000 * new)}{_receives(row)}",
                weight=0.5,
            )


def _how_far(change: Change) -> str:
    """Return in words how far behind the standby that lags most is at the end."""
    last = max(_rows(change.after), key=_lag_s, default=None)
    if last is None:
        return "no standby is connected"
    lag = duration_text(1000 * _lag_s(last))
    return f"standby {_name(last)} replays the WAL {lag} after it is written here{_receives(last)}"


def _receives(row: Row) -> str:
    """Return an explanation if a standby received WAL but does not replay it, so the cause is there; else ''."""
    flush, replay = (float(row.get(f"{what}_lag") or 0) for what in ("flush", "replay"))
    held = replay > 2 * flush and replay > 1e6
    return ", and has received it: a conflicting statement or the disk there delays the replay" if held else ""


def _rows(interval: Interval) -> list[Row]:
    return interval.query(f"from {interval.ends(_VIEW)[1]}") if interval.has(_VIEW) else []


def _name(row: Row) -> str:
    return str(row.get("application_name") or row.get("client_addr") or "")


def _lag_s(row: Row) -> float:
    return float(row.get("replay_lag") or 0) / 1e6


RULES = (waits_for_standbys, late_standbys)
