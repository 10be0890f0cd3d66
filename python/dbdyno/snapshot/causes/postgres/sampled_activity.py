"""What sampled sessions did, added up once per interval, because many rules need it and a day has a million rows."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from dbdyno.snapshot.engines.postgres.sampler import ACTIVITY
from dbdyno.snapshot.reading.sums.look_sums import LOOKS
from dbdyno.snapshot.sessions.samples import SEEN, WHOLE
from dbdyno.snapshot.sessions.summed_samples import files_of, looked_hours

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

_TABLES = count()


def sampled_activity(interval: Interval) -> tuple[str, int]:
    """Return a table of what sessions did in an interval, and the number of looks, in millionths.

    The table has a row per combination of `kind`, `state`, `statement`, `event_type` and `event`; `n` is how often a
    session was seen in that combination, in millionths too.
    """
    return interval.compute_once("sampled sessions", lambda: _added_up(interval)), interval.looks * WHOLE


def average_sessions(interval: Interval, where: str) -> float:
    """Return the average number of sessions that an SQL condition selects; 0 if no session was sampled."""
    source, looks = sampled_activity(interval)
    if not looks:
        return 0.0
    return float(interval.query(f"select coalesce(sum(n), 0)::bigint as n from {source} where {where}")[0]["n"]) / looks


def _added_up(interval: Interval) -> str:
    name = f"sampled_sessions_{next(_TABLES)}"
    hours, others = looked_hours(interval)
    columns = "kind, state, statement, event_type, event"
    source, _ = interval.samples("activity", ACTIVITY, others)
    rows = f"select {columns}, {SEEN} as seen from {source} where {interval.inside}"
    if hours:
        rows = f"select {columns}, seen from {files_of(hours, LOOKS)} union all by name {rows}"
    interval.connection.execute(
        f"create temp table {name} as select {columns}, sum(seen)::bigint as n from ({rows}) group by all"
    )
    return name
