"""Average active sessions by wait class, database and user in each sub-interval, computed from samples.

Like `rates`, this serves comparisons of periods: an array of names by sub-intervals. A value is the number of sessions
seen divided by the number of looks; a sub-interval without looks gives no value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from dbdyno.evidence.events import wait_class
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.rates import HOUR_US
from dbdyno.snapshot.reading.sums.look_sums import PARTS
from dbdyno.snapshot.sessions.active import EVENT_ENGINES, STATEMENT_TYPES, active_rows
from dbdyno.snapshot.sessions.samples import SEEN, WHOLE, activity_columns
from dbdyno.snapshot.sessions.summed_samples import files_of, looked_hours

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbdyno.snapshot.reading.sums.chunk import Chunk

NO_NAME = "none"
"""Name for sessions without a database or a user."""
_LISTED = "bits, event_type, event, datname, usename, list(slot), list(seen)"


class ActiveRates:
    """Average active sessions by name in each dimension (`class`, `database`, `user`), one value per time slot."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._found: dict[str, dict[str, NDArray[np.float64]]] = {"class": {}, "database": {}, "user": {}}

    def add(self, dimension: str, name: str | None, slots: list[int], values: list[float]) -> None:
        """Add values to a name in different time slots; None means a session without a database or user."""
        import numpy as np

        known = self._found[dimension]
        if (name or NO_NAME) not in known:
            known[name or NO_NAME] = np.zeros(self.slots)
        known[name or NO_NAME][slots] += values

    def means(self, dimension: str) -> dict[str, float]:
        """Return the mean of each name in a dimension."""
        return {name: float(values.mean()) for name, values in self._found[dimension].items()}

    def values(self, dimension: str, names: Sequence[str]) -> NDArray[np.float64]:
        """Return the values of these names, one row per name; zeros for an unknown name."""
        import numpy as np

        none = np.zeros(self.slots)
        found = [self._found[dimension].get(name, none) for name in names]
        return np.array(found).reshape(len(names), self.slots)


def active_rates(interval: Interval, *, hourly: bool = False) -> ActiveRates | None:
    """Return the active sessions of an interval, or None if there were no looks; `hourly` gives a value per hour."""
    slots, looks = _slots(interval, hourly=hourly)
    if not looks:
        return None
    engine = interval.before.engine
    found = ActiveRates(len(looks))
    # The bit of a column is set if a row is not grouped by it.
    for bits, kind, event, database, user, at, seen in _seen(interval, slots):
        values = [count / (looks[slot] * WHOLE) for slot, count in zip(at, seen, strict=True)]
        if bits == 0b011:
            found.add("class", wait_class(EVENT_ENGINES[engine], kind, event), at, values)
        elif bits == 0b101:
            found.add("database", database, at, values)
        else:
            found.add("user", user, at, values)
    return found


def _seen(interval: Interval, slots: Mapping[int, int]) -> Iterator[tuple[Any, ...]]:
    """Yield how often active sessions were seen by event, database and user, each with a list of slots."""
    hours, others = looked_hours(interval)
    if hours:
        rows = interval.connection.execute(
            f"""select {_LISTED} from (
              select bits, slot, event_type, event, datname, usename, sum(seen)::bigint as seen
              from {files_of(hours, PARTS)}
                join (select unnest($1::bigint[]) as part, unnest($2::integer[]) as slot) using (part)
              group by all)
            group by bits, event_type, event, datname, usename""",
            [list(slots), list(slots.values())],
        )
        yield from rows.fetchall()
    if others != []:
        yield from _seen_in_samples(interval, slots, others)


def _seen_in_samples(interval: Interval, slots: Mapping[int, int], hours: list[Chunk] | None) -> list[tuple[Any, ...]]:
    """Return the rows of `_seen`, from the samples of these hours; None means all hours."""
    source, _ = interval.samples("activity", activity_columns(STATEMENT_TYPES[interval.before.engine]), hours)
    parts = [(part["number"], part["at_us"], part["elapsed_ns"] // 1000) for part in interval.sums.parts()]
    kept = [(at, elapsed, slots[number]) for number, at, elapsed in parts if number in slots]
    given = "unnest($1::bigint[]) as until_us, unnest($2::bigint[]) as elapsed_us, unnest($3::integer[]) as slot"
    # Only the few looks are joined by time, not the rows, which are millions for a day. They are a table, so that
    # DuckDB knows how few they are, and keeps them and not the rows in memory.
    interval.connection.execute(
        f"""create or replace temp table looked as
        select at_us, slot from (select distinct at_us from {source} where {interval.inside}) s
          asof join (select {given}) p on s.at_us <= p.until_us
        where s.at_us > p.until_us - p.elapsed_us""",
        [[at for at, _, _ in kept], [elapsed for _, elapsed, _ in kept], [slot for _, _, slot in kept]],
    )
    return interval.connection.execute(
        f"""select {_LISTED} from (
          select grouping(event, datname, usename) as bits, slot, event_type, event, datname, usename,
            sum({SEEN})::bigint as seen
          from (from {source} where {active_rows(interval)}) join looked using (at_us)
          group by grouping sets ((slot, event_type, event), (slot, datname), (slot, usename)))
        group by bits, event_type, event, datname, usename"""
    ).fetchall()


def _slots(interval: Interval, *, hourly: bool) -> tuple[dict[int, int], list[int]]:
    """Return the slot of each sub-interval by its number, and the looks per slot, for sub-intervals with looks."""
    counts = {end.number: end.looks for end in interval.chain[1:]}
    looked = [part for part in interval.sums.parts() if counts.get(part["number"])]
    slots: dict[int, int] = {}
    looks: list[int] = []
    for _, group in groupby(looked, key=lambda part: part["at_us"] // HOUR_US if hourly else part["number"]):
        numbers = [part["number"] for part in group]
        slots |= dict.fromkeys(numbers, len(looks))
        looks.append(sum(counts[number] for number in numbers))
    return slots, looks
