"""Where the sampled sessions of an interval are read from: sums of whole days and hours, and samples of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbdyno.base.sql_text import literal
from dbdyno.snapshot.reading.sums import look_sums
from dbdyno.snapshot.reading.sums.day import HORIZONS, LOOK_COLUMNS, LOOKS, MINUTES, SESSIONS, TRANSACTIONS
from dbdyno.snapshot.sessions.active import (
    BEGUN_US,
    IDLE,
    active_rows,
    horizon_holders,
    idle_rows,
    longest_transactions,
    not_own_sessions,
    other_rows,
)
from dbdyno.snapshot.sessions.samples import SEEN

if TYPE_CHECKING:
    from dbdyno.snapshot.engines.view import Column
    from dbdyno.snapshot.reading.interval import Interval
    from dbdyno.snapshot.reading.sums.chunk import Chunk
    from dbdyno.snapshot.reading.sums.day import Day

_SUMMED = "session, datname, usename, application, client, statement, event_type, event"
"""The columns that cached days have for active sessions, besides how often they were seen."""
_STATES = "kind, state, statement, event_type, event"


class SummedSamples:
    """Sampled sessions of an interval, read from sums where these exist, and from the samples elsewhere.

    Attributes:
        days: Days that are read as sums; missing sums are computed and cached.
        hours: Other hours that are read as sums.
    """

    def __init__(self, interval: Interval, columns: Sequence[Column]) -> None:
        self._interval = interval
        self._columns = columns
        self.days = _summed_days(interval)
        self._outside = _hours_outside(interval, self.days)
        self.hours, self._rest = looked_hours(interval, self._outside)

    @property
    def is_by_minute(self) -> bool:
        """Return True if `minutes` reads sums."""
        return bool(self.days or self.hours)

    def active_sessions(self) -> str:
        """Return an SQL relation with the active sessions, a row per sample or per sum of a day, with its weight."""
        return self._seen(self._outside)

    def active_sessions_outside(self) -> str:
        """Return an SQL relation with the active sessions outside of the hours in `hours`."""
        return self._seen(self._rest)

    def _seen(self, hours: list[Chunk] | None) -> str:
        columns = _SUMMED if self.days else "*"
        rows = f"select {columns}, {SEEN} as seen from {self._samples(hours)} where {active_rows(self._interval)}"
        if not self.days:
            return f"({rows})"
        summed = f"select {_SUMMED}, seen from {self._of_days(SESSIONS)} where {not_own_sessions(self._interval)}"
        return f"({summed} union all by name {rows})"

    def names(self) -> str:
        """Return an SQL relation with the rows of `look_sums.NAMES` for the hours in `hours`."""
        return self._of_hours(look_sums.NAMES)

    def minutes(self) -> str:
        """Return an SQL relation with how often each wait event was seen over time, per minute where sums are read."""
        columns = "at_us, event_type, event"
        sums = [self._of_days(MINUTES)] if self.days else []
        sums += [self._of_hours(look_sums.MINUTES)] if self.hours else []
        rows = f"select {columns}, {SEEN} as seen from {self._samples(self._rest)} where {active_rows(self._interval)}"
        return f"({' union all by name '.join([*(f'select {columns}, seen from {one}' for one in sums), rows])})"

    def states(self) -> str:
        """Return an SQL relation with how often sessions of each kind were in each state, without dbdyno's own."""
        rows = f"select {_STATES}, {SEEN} as seen from {self._samples(self._rest)} where {other_rows(self._interval)}"
        parts = [f"select {_STATES}, seen from {self._of_hours(look_sums.LOOKS)} where theirs"] if self.hours else []
        if self.days:
            mine = not_own_sessions(self._interval)
            parts.append(f"select {LOOK_COLUMNS}, seen from {self._of_days(LOOKS)} where {mine}")
        return f"({' union all by name '.join([*parts, rows])})"

    def idle_count(self) -> int:
        """Return how often sessions were seen idle in a transaction, in millionths of a look."""
        found = [
            f"select coalesce(sum({SEEN}), 0) as n from {self._samples(self._rest)} where {idle_rows(self._interval)}"
        ]
        if self.hours:
            found.append(
                f"select coalesce(sum(seen), 0) from {self._of_hours(look_sums.LOOKS)} where theirs and {IDLE}"
            )
        seen = sum(int(row["n"]) for row in self._interval.query(" union all ".join(found)))
        return seen + sum(int((day.model or {})["idle"]) for day in self.days)

    def create_longest_transactions(self, least_us: int, limit: int, kept: str) -> str:
        """Create the table `longest_transactions`, and return an SQL relation with samples that may belong to them.

        `kept` are SQL conditions that select the rows; if there are any, samples are read instead of sums.
        """
        interval = self._interval
        summed = self.is_by_minute and not kept
        source = self._samples(self._rest if summed else None)
        sql = longest_transactions(interval, source, least_us, limit, kept)
        if summed:
            sums = [self._of_days(TRANSACTIONS)] if self.days else []
            sums += [self._of_hours(look_sums.LONGEST)] if self.hours else []
            rows = " union all by name ".join(f"from {one} where longest >= {int(least_us)}" for one in sums)
            sql = f"""select session, begun, max(longest) as longest from (from ({sql}) union all by name {rows})
                group by all order by longest desc, session, begun limit {int(limit)}"""
        interval.connection.execute(f"create or replace temp table longest_transactions as {sql}")
        return self._samples(self._hours_of_longest()) if summed else source

    def horizons(self, limit: int, least_us: int) -> str:
        """Return an SQL relation with the transactions that held back vacuum, a row each per hour or day, and rest.

        Sums have only those of `LONG_US` or longer.
        """
        parts = [horizon_holders(self._interval, self._samples(self._rest), limit, least_us)]
        parts += [f"from {self._of_days(HORIZONS)}"] if self.days else []
        parts += [f"from {self._of_hours(look_sums.HORIZONS)}"] if self.hours else []
        return f"({' union all by name '.join(f'(from ({one}))' for one in parts)})"

    def _hours_of_longest(self) -> list[Chunk]:
        """Return the hours in which the transactions of `longest_transactions` were open."""
        spans = [
            (row["begun"] * BEGUN_US, (row["begun"] + 1) * BEGUN_US + row["longest"])
            for row in self._interval.query("from longest_transactions")
        ]
        return [
            one
            for one in self._interval.sums.chunks
            if any(low <= one.chain[-1].at_ns // 1000 and high > one.chain[0].at_ns // 1000 for low, high in spans)
        ]

    def _samples(self, hours: list[Chunk] | None) -> str:
        return self._interval.samples("activity", self._columns, hours)[0]

    def _of_days(self, name: str) -> str:
        return f"read_parquet([{', '.join(literal(str(day.path(name))) for day in self.days)}])"

    def _of_hours(self, name: str) -> str:
        return files_of(self.hours, name)


def files_of(hours: Sequence[Chunk], name: str) -> str:
    """Return an SQL relation over the files called `name` of several hours, one file per hour."""
    return f"read_parquet([{', '.join(literal(str(one.file(name))) for one in hours)}])"


def looked_hours(interval: Interval, among: list[Chunk] | None = None) -> tuple[list[Chunk], list[Chunk] | None]:
    """Return the hours that can be read as sums, and the hours that must be read as samples.

    `among` limits both to some hours; None means the whole interval. If no hour can be read as sums, the second value
    is `among`, so None means all hours.
    """
    if len(interval.chain) <= 2 or interval.inside == "true":
        return [], among
    every = interval.sums.chunks if among is None else among
    found = interval.sums.hours_with_look_sums(every)
    known = {one.home for one in found}
    return found, [one for one in every if one.home not in known] if found else among


def _summed_days(interval: Interval) -> list[Day]:
    """Return the days whose sums replace the samples; sums that are not cached yet are computed."""
    from dbdyno.snapshot.reading.days import cache_days

    if len(interval.chain) <= 2 or interval.inside == "true":
        return []
    for _ in cache_days(interval.sums):
        pass
    return [day for day in interval.sums.days if day.is_sampled]


def _hours_outside(interval: Interval, days: Sequence[Day]) -> list[Chunk] | None:
    """Return the hours of an interval outside of these days; None, which means all hours, if there are no days."""
    summed = {chunk.home for day in days for chunk in day.chunks}
    return [one for one in interval.sums.chunks if one.home not in summed] if days else None
