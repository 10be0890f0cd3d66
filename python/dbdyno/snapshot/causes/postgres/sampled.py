"""What sampled sessions did, added up once per interval: many causes ask for it, and a day has a million rows."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from dbdyno.snapshot.engines.postgres.sampler import ACTIVITY

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

_TABLES = count()


def sampled(one: Interval) -> tuple[str, int]:
    """Return a table of what sessions did in an interval, and the number of looks.

    It has `kind`, `state`, `statement`, `event_type` and `event`, and in `n` how often a session was seen so.
    """
    source, looks = one.samples("activity", ACTIVITY)
    return one.once("sampled sessions", lambda: _added_up(one, source)), looks


def _added_up(one: Interval, source: str) -> str:
    name = f"sampled_sessions_{next(_TABLES)}"
    one.connection.execute(
        f"create temp table {name} as select kind, state, statement, event_type, event, count(*) as n"
        f" from {source} where {one.inside} group by all"
    )
    return name
