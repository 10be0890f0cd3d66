"""Active session history: who worked or waited, on what and when, from the looks between the snapshots.

    history = History(interval)
    history.averages_by("statement", top=10)   # of each one: average active sessions, most frequent waits
    history.over_time()                        # by wait class over time

A session is active if it is a client's session (or a parallel worker) that runs a statement; a session idle in a
transaction is not active. Average active sessions are the sessions seen divided by the looks taken. A row that stands
for a period of many looks counts by its share of them (`samples.SEEN`), and the period as one look. The number of looks
is known per snapshot, not per time bucket: a bucket gets its share of them by time, so buckets shorter than a few looks
are never made.

For cached days (`reading/sums/day.py`) and hours (`look_sums.py`) the sums are read, and for the rest the samples. Both
give the same figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import SnapshotError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.sections import Row
from dbdyno.base.sql_text import literal
from dbdyno.evidence.events import CLASSES, ON_CPU, wait_class
from dbdyno.snapshot.reading.clock import elapsed_ns
from dbdyno.snapshot.reading.statement_names import statements_naming
from dbdyno.snapshot.reading.statement_texts import statement_texts
from dbdyno.snapshot.reading.sums.look_sums import NAME_COLUMNS
from dbdyno.snapshot.sessions.active import (
    ACTIVE,
    EVENT_ENGINES,
    HOLDER_COLUMNS,
    LONG_US,
    MINUTE_US,
    STATEMENT_TYPES,
    active_rows,
    transaction_rows,
)
from dbdyno.snapshot.sessions.samples import SEEN, WHOLE, activity_columns
from dbdyno.snapshot.sessions.summed_samples import SummedSamples

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

DIMENSIONS = {
    "statement": "statement::varchar",
    "user": "usename",
    "database": "datname",
    "application": "application",
    "client": "client",
    "event": "event",
    "class": "class",
    "session": "session::varchar",
}
"""Dimensions by which sessions can be grouped, with their columns."""

TABLE = "table"
"""Name of the filter for sessions whose statement names a table; there is no such column."""
BUCKETS_MOST = 180
LOOKS_LEAST = 4
"""Minimum number of looks in a time bucket."""
WIDTHS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)

_NONE = {
    "statement": "none",
    "user": "none",
    "database": "none",
    "application": "no name",
    "client": "not recorded",
    "session": "none",
}


class History:
    """The active sessions of an interval, one row per session, state, and look or period.

    `where` selects the sessions whose dimension has that value, or with `table` those whose statement names the table.

    Raises:
        SnapshotError: A dimension is not known.
    """

    def __init__(self, interval: Interval, where: Mapping[str, str] | None = None) -> None:
        self.interval = interval
        self.engine = interval.before.engine
        self._columns = activity_columns(STATEMENT_TYPES[self.engine])
        self.looks = interval.looks
        self._summed = SummedSamples(interval, self._columns)
        self.where = dict(where or {})
        self._known: dict[str, list[Row]] = {}
        self._grouped: dict[str, str] = {}
        self.text_of = statement_texts(interval)
        self._classify()

    def averages_by(self, dimension: str, top: int | None = None) -> list[Row]:
        """Return the average active sessions of each value of a dimension, the largest first.

        A row has `aas`, `share` (of all selected sessions), `sessions` (number seen with the value), and `mostly` (the
        most frequent wait classes).

        Raises:
            SnapshotError: The dimension is not known.
        """
        _column(dimension)
        if not self.looks:
            return []
        rows = self._values(dimension)
        return rows if top is None else rows[:top]

    def group(self, dimensions: Sequence[str]) -> None:
        """Sum up the samples in one pass: for each of these dimensions, by its value, wait class and session."""
        wanted = [one for one in dimensions if one not in self._grouped]
        if not wanted or not self.looks:
            return
        table = f"session_sums_{len(self._grouped)}"
        names = [f"d{at}" for at in range(len(wanted))]
        columns = [_column(one).removesuffix("::varchar") for one in wanted]
        values = ", ".join(f"{column} as {name}" for column, name in zip(columns, names, strict=True))
        sets = ", ".join(f"({name}, class, session)" for name in names)
        # The bit of a column is set in `grouping` if the row is not grouped by it; the last column has the lowest bit.
        masks = [(1 << len(names)) - 1 - (1 << at) for at in reversed(range(len(names)))]
        said = " ".join(f"when {mask} then '{one}'" for mask, one in zip(masks, wanted, strict=True))
        named = " ".join(
            f"when {mask} then coalesce({name}::varchar, '{_NONE.get(one, 'none')}')"
            for mask, name, one in zip(masks, names, wanted, strict=True)
        )
        by_hour = bool(self._summed.hours) and not self.where and set(wanted) <= NAME_COLUMNS.keys()
        seen = self._summed.active_sessions_outside() if by_hour else self._summed.active_sessions()
        self._view("session_seen", seen, self._kept())
        self.interval.connection.execute(
            f"""create or replace temp table {table} as
            select case g {said} end as dimension, case g {named} end as name, class, session, seen from (
              select grouping({", ".join(names)}) as g, {", ".join(names)}, class, session, sum(seen)::bigint as seen
              from (select {values}, class, session, seen from session_seen) group by grouping sets ({sets}))"""
        )
        if by_hour:
            self._add_hours(table, wanted)
        self._grouped |= dict.fromkeys(wanted, table)

    def _add_hours(self, table: str, dimensions: Sequence[str]) -> None:
        """Add the sums of hours to a table of `group`; each row has either a class or a session."""
        none = " ".join(f"when '{one}' then '{_NONE.get(one, 'none')}'" for one in dimensions)
        self.interval.connection.execute(
            f"""insert into {table}
            select dimension, coalesce(name, case dimension {none} end), class, s.session, sum(seen)::bigint
            from {self._summed.names()} s left join session_classes c on s.session is null
              and s.event_type is not distinct from c.type and s.event is not distinct from c.named
            where dimension in ({", ".join(map(literal, dimensions))}) group by all"""
        )

    def _values(self, dimension: str) -> list[Row]:
        """Return all values of a dimension, queried only once."""
        if dimension in self._known:
            return self._known[dimension]
        self.group((dimension,))
        none = _NONE.get(dimension, "none")
        grouped = f"(select name, class, session, seen from {self._grouped[dimension]} where dimension = '{dimension}')"
        rows = self.interval.query(
            f"""with each as (
              select name, class, sum(seen)::bigint as seen from {grouped} where class is not null group by 1, 2)
            select name, sum(seen) / {self.looks * WHOLE} as aas, sum(seen) / {WHOLE} as seen,
              sum(seen) / nullif(sum(sum(seen)) over (), 0) as share,
              list({{'class': class, 'seen': seen}} order by seen desc, class) as classes
            from each group by name order by aas desc, name"""
        )
        pairs = f"select distinct name, session from {grouped} where session is not null"
        sql = f"select name, count(*) as n from ({pairs}) group by 1"
        counts = {row["name"]: row["n"] for row in self.interval.query(sql)}
        without = WITHOUT_SHOWN if self.engine == "mariadb" else WITHOUT
        for row in rows:
            row["mostly"] = _mostly(row.pop("classes"))
            row["sessions"] = counts.get(row["name"])
            if dimension == "statement":
                row["text"] = self.text_of.get(row["name"], without if row["name"] == none else NO_TEXT)
        self._known[dimension] = rows
        return rows

    def value_count(self, dimension: str) -> int:
        """Return the number of values of a dimension that were seen."""
        return len(self._values(dimension)) if self.looks else 0

    def over_time(self) -> JsonObject | None:
        """Return average active sessions by wait class in time buckets, or None if there were too few looks to draw.

        The result has `at_us` (the beginning of each bucket), `width_us`, and `classes` with a value per bucket, which
        is None for a bucket without looks.
        """
        parts = [one for one in self._parts() if one[0] < one[1]]
        if not parts or self.looks < 3 * LOOKS_LEAST:
            return None
        # Not in order if the server's clock stepped.
        start, end = min(low for low, _, _ in parts), max(high for _, high, _ in parts)
        width = self._width((end - start) / 1e6)
        first = start // width
        looks = [0.0] * (-(-end // width) - first)
        for low, high, count in parts:
            for at in range(low // width - first, -(-high // width) - first):
                edge = (at + first) * width
                inside = min(high, edge + width) - max(low, edge)
                looks[at] += count * max(inside, 0) / (high - low)
        enough = 0.2 * self.looks * width / (end - start)
        known = [one >= enough for one in looks]
        values: dict[str, list[float | None]] = {}
        for row in self.interval.query(
            f"""select class, at_us // {width} - {first} as bucket, sum(seen)::bigint as seen
            from {self._by_time(width)} where at_us // {width} - {first} between 0 and {len(looks) - 1} group by all"""
        ):
            of = values.setdefault(row["class"], [0.0 if one else None for one in known])
            if known[row["bucket"]]:
                of[row["bucket"]] = row["seen"] / WHOLE / looks[row["bucket"]]
        order = sorted(values, key=lambda name: CLASSES.index(name) if name in CLASSES else len(CLASSES))
        return {
            "at_us": [(first + at) * width for at in range(len(looks))],
            "from_us": start,
            "to_us": end,
            "width_us": width,
            "classes": [{"name": name, "values": values[name]} for name in order],
            "sampled": known,
        }

    def idle_in_transaction(self) -> float | None:
        """Return the average number of sessions idle in a transaction, or None if there were no looks."""
        if not self.looks:
            return None
        return self._summed.idle_count() / (self.looks * WHOLE)

    def transactions(self, top: int, least_us: int = LONG_US) -> list[Row]:
        """Return the longest open transactions seen in the selected sessions, one row each.

        A row has how long the transaction was open, the longest time that one statement ran in it, the longest time
        that it idled, and its last state and statement.
        """
        if not self.looks:
            return []
        last = ", ".join(
            f"arg_max({name}, at_us) as {name}" for name in ("usename", "datname", "application", "client")
        )
        # Grouped by begin, rounded to two seconds: those divided by the rounding are joined below.
        kept = self._kept(("class", "event"))
        source = self._summed.create_longest_transactions(least_us, 2 * top, kept)
        seen = transaction_rows(self.interval, source, least_us, kept)
        rows = self.interval.query(
            f"""select session::varchar as session, begun, {last}, max(transaction_us) * 1000 as "open",
              max(at_us) as seen, max(statement_us) filter (where {ACTIVE}) * 1000 as ran,
              max(state_us) filter (where state like 'idle in transaction%') * 1000 as idled,
              arg_max(state, at_us) as state, arg_max(statement, at_us)::varchar as statement
            from ({seen}) semi join longest_transactions using (session, begun)
            group by session, begun order by "open" desc, session"""
        )
        found: dict[tuple[str, int], Row] = {}
        for row in rows:
            at = row["session"], int(row.pop("begun"))
            if not any((at[0], at[1] + step) in found for step in (-1, 1)):
                found[at] = row | {"text": self.text_of.get(row["statement"] or "")}
        return list(found.values())[:top]

    def horizons(self, top: int, least_us: int = LONG_US) -> list[Row]:
        """Return the transactions that held back vacuum in the selected sessions, the oldest horizon first.

        A row has the greatest age of its horizon in transactions, for how long it was the oldest of the server, and the
        last state and statement. There is none if horizons were not sampled.
        """
        if not self.looks:
            return []
        source = self._summed.horizons(4 * top, least_us)
        rows = self.interval.query(
            f"""select session::varchar as session, begun, max(horizon_age) as horizon, sum(held)::bigint as held,
              max(transaction_us) * 1000 as "open", max(at_us) as seen,
              {", ".join(f"arg_max({name}, at_us) as {name}" for name in HOLDER_COLUMNS)}
            from {source} where true{self._kept(("class", "event"))} group by session, begun
            order by horizon desc, session, begun"""
        )
        look_ns = self.interval.seconds * 1e9 / self.looks
        found: dict[tuple[str, int | None], Row] = {}
        for row in rows:
            at = row["session"], row.pop("begun")
            # Grouped by begin, rounded to two seconds: those divided by the rounding are joined.
            same = () if at[1] is None else ((at[0], at[1] + step) for step in (-1, 1))
            first = next((one for one in same if one in found), None)
            if first is not None:
                found[first]["held"] += row["held"] * look_ns
                continue
            kind = row.pop("kind")
            found[at] = row | {
                "held": row["held"] * look_ns,
                "state": row["state"] if kind == "client backend" else kind,
                "statement": None if row["statement"] is None else str(row["statement"]),
                "text": self.text_of.get(str(row["statement"])),
            }
        return list(found.values())[:top]

    def _by_time(self, width_us: int) -> str:
        """Return an SQL relation with how often each wait class was seen over time, for buckets of `width_us`."""
        if self._summed.is_by_minute and not self.where and width_us % MINUTE_US == 0:
            return "session_minutes"
        return f"(select at_us, class, {SEEN} as seen from {self.samples()})"

    def _kept(self, without: Sequence[str] = ()) -> str:
        """Return the SQL conditions for the values in `where`, except for the dimensions `without`."""
        return "".join(
            f" and {self._condition(name, value)}" for name, value in self.where.items() if name not in without
        )

    def _condition(self, name: str, value: str) -> str:
        """Return SQL that is true if a dimension equals `value`; for a table, if the statement names it."""
        if name != TABLE:
            return f"coalesce({_column(name)}, '{_NONE.get(name, 'none')}') = {literal(value)}"
        naming = ", ".join(map(literal, statements_naming(self.text_of, value)))
        return f"statement::varchar in ({naming})" if naming else "false"

    def samples(self) -> str:
        """Create the view `session_history` with the samples of active sessions, and return its name."""
        self._view("session_history", self._sampled(), self._kept())
        return "session_history"

    def _sampled(self) -> str:
        source, _ = self.interval.samples("activity", self._columns)
        return f"(from {source} where {active_rows(self.interval)})"

    def _classify(self) -> None:
        """Create the views of active sessions, each row with its wait class.

        They are `session_seen` with a row per sample or sum, and `session_minutes` if there are sums by minute. Rows
        are not copied, because a day has millions of them.
        """
        connection, engine = self.interval.connection, EVENT_ENGINES[self.engine]
        connection.execute("create or replace temp table session_classes (type varchar, named varchar, class varchar)")
        if self._summed.is_by_minute:
            events = self._summed.minutes()
            self._view("session_minutes", events)
        else:
            events = self._sampled()
        seen = connection.execute(f"select distinct event_type, event from {events}").fetchall()
        if seen:
            connection.executemany(
                "insert into session_classes values (?, ?, ?)",
                [(kind, event, wait_class(engine, kind, event)) for kind, event in seen],
            )

    def _view(self, name: str, rows: str, kept: str = "") -> None:
        """Create a view of the rows that `kept` selects, each with its wait class."""
        self.interval.connection.execute(
            f"""create or replace temp view {name} as select * from (
              select s.* replace (coalesce(s.event, '{ON_CPU}') as event), c.class
              from {rows} s join session_classes c
                on s.event_type is not distinct from c.type and s.event is not distinct from c.named)
            where true{kept}"""
        )

    def _parts(self) -> list[tuple[int, int, int]]:
        """Return the start and end (microseconds by the server's clock) and number of looks of each sub-interval."""
        found = []
        chain = self.interval.chain
        for before, after in pairwise(chain):
            high = after.at_ns // 1000
            low = high - max(elapsed_ns(before, after) // 1000, 1)
            found.append((low, high, after.looks))
        return found

    def _width(self, seconds: float) -> int:
        least = max(seconds / BUCKETS_MOST, LOOKS_LEAST * seconds / self.looks)
        return int(next((one for one in WIDTHS_S if one >= least), WIDTHS_S[-1]) * 1_000_000)


NO_TEXT = "(text not read)"
WITHOUT_SHOWN = "(not known: the server shows no text for it)"
WITHOUT = "(no identifier: still parsing, a command that has none, or compute_query_id is off)"


def _column(dimension: str) -> str:
    if dimension not in DIMENSIONS:
        raise SnapshotError(
            f"sessions cannot be grouped by {dimension!r:.40}", next_step=f"use one of {', '.join(DIMENSIONS)}"
        )
    return DIMENSIONS[dimension]


def _mostly(classes: Sequence[Mapping[str, Any]]) -> str:
    """Return at most three wait classes with their shares, such as `lock 80 %, CPU 20 %`."""
    whole = sum(one["seen"] for one in classes)
    shares = [(one["class"], one["seen"] / whole) for one in classes[:3]]
    return ", ".join(f"{name} {share * 100:.0f} %" for name, share in shares if share >= 0.005)
