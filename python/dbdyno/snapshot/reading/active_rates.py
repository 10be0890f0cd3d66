"""Average active sessions by wait class, database and user in each sub-interval, computed from samples.

Like `rates`, this serves comparisons of periods: an array of names by sub-intervals. A value is the number of sessions
seen divided by the number of looks; a sub-interval without looks gives no value.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from dbdyno.evidence.events import wait_class
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.rates import HOUR_US
from dbdyno.snapshot.sessions.active import EVENT_ENGINES, STATEMENT_TYPES, active_rows
from dbdyno.snapshot.sessions.samples import activity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NONE = "none"
"""Name for sessions without a database or a user."""


class ActiveRates:
    """Average active sessions by name in each dimension (`class`, `database`, `user`), one value per time slot."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._found: dict[str, dict[str, NDArray[np.float64]]] = {"class": {}, "database": {}, "user": {}}

    def add(self, dimension: str, name: str | None, slot: int, value: float) -> None:
        """Add a value to a name in a time slot; None means a session without a database or user."""
        import numpy as np

        known = self._found[dimension]
        if (name or NONE) not in known:
            known[name or NONE] = np.zeros(self.slots)
        known[name or NONE][slot] += value

    def means(self, dimension: str) -> dict[str, float]:
        """Return the mean of each name in a dimension."""
        return {name: float(values.mean()) for name, values in self._found[dimension].items()}

    def values(self, dimension: str, names: Sequence[str]) -> NDArray[np.float64]:
        """Return the values of these names, one row per name; zeros for an unknown name."""
        import numpy as np

        none = np.zeros(self.slots)
        found = [self._found[dimension].get(name, none) for name in names]
        return np.array(found).reshape(len(names), self.slots)


def active_rates(one: Interval, *, hourly: bool = False) -> ActiveRates | None:
    """Return the active sessions of an interval, or None if there were no looks; `hourly` gives a value per hour."""
    slots, looks = _slots(one, hourly=hourly)
    if not looks:
        return None
    engine = one.before.engine
    source, _ = one.samples("activity", activity(STATEMENT_TYPES[engine]))
    parts = [(part["number"], part["at_us"], part["elapsed_ns"] // 1000) for part in one.sums.parts()]
    kept = [(at, elapsed, slots[number]) for number, at, elapsed in parts if number in slots]
    given = "unnest($1::bigint[]) as until_us, unnest($2::bigint[]) as elapsed_us, unnest($3::integer[]) as slot"
    # Only the few looks are joined by time, not the rows, which are millions for a day. They are a table, so that
    # DuckDB knows how few they are, and keeps them and not the rows in memory.
    one.connection.execute(
        f"""create or replace temp table looked as
        select at_us, slot from (select distinct at_us from {source} where {one.inside}) s
          asof join (select {given}) p on s.at_us <= p.until_us
        where s.at_us > p.until_us - p.elapsed_us""",
        [[at for at, _, _ in kept], [elapsed for _, elapsed, _ in kept], [slot for _, _, slot in kept]],
    )
    cursor = one.connection.execute(
        f"""select grouping(event, datname, usename) as by, slot, event_type, event, datname, usename, count(*) as seen
        from (from {source} where {active_rows(one)}) join looked using (at_us)
        group by grouping sets ((slot, event_type, event), (slot, datname), (slot, usename))"""
    )
    found = ActiveRates(len(looks))
    # The bit of a column is set if a row is not grouped by it.
    for by, slot, kind, event, database, user, seen in cursor.fetchall():
        value = seen / looks[slot]
        if by == 0b011:
            found.add("class", wait_class(EVENT_ENGINES[engine], kind, event), slot, value)
        elif by == 0b101:
            found.add("database", database, slot, value)
        else:
            found.add("user", user, slot, value)
    return found


def _slots(one: Interval, *, hourly: bool) -> tuple[dict[int, int], list[int]]:
    """Return the time slot of each sub-interval by its number, and the number of looks in each slot with any."""
    counts = {end.number: end.looks for end in one.chain[1:]}
    looked = [part for part in one.sums.parts() if counts.get(part["number"])]
    slots: dict[int, int] = {}
    looks: list[int] = []
    for _, group in groupby(looked, key=lambda part: part["at_us"] // HOUR_US if hourly else part["number"]):
        numbers = [part["number"] for part in group]
        slots |= dict.fromkeys(numbers, len(looks))
        looks.append(sum(counts[number] for number in numbers))
    return slots, looks
