"""Calls and time of each statement by sub-interval of an interval, added up by DuckDB.

The values of ten thousand statements by the minutes of a day are never in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dbdyno.base.sql_text import quoted
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.rates import Span, spans_of
from dbdyno.snapshot.reading.statement_texts import KEYS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbdyno.snapshot.causes.change import Change


@dataclass(frozen=True, slots=True)
class StatementTotal:
    """A statement's calls, milliseconds, work (blocks or rows that it read), and number of sub-intervals with calls."""

    calls: float
    ms: float
    work: float
    slots: int


@dataclass(frozen=True, slots=True)
class StatementCosts:
    """The statements of one interval; `seconds` is its duration without sub-intervals in which counters were lost."""

    totals: Mapping[str, StatementTotal]
    seconds: float
    slots: int
    _one: Interval
    _source: str
    _type: str

    def weighted_sums(
        self, what: Literal["ms", "work"], weights: Iterable[tuple[str, float, float]]
    ) -> NDArray[np.float64]:
        """Return, by sub-interval, weighted sums over statements of a measure and of calls.

        Args:
            what: The measure.
            weights: For each statement: its name, the weight of the measure, the weight of its calls.
        """
        import numpy as np

        rows = self._one.connection.execute(
            f"""select slot, sum({what} * weight + calls * by_calls) as e from {self._source} s
            join (select unnest($1::varchar[])::{self._type} as key, unnest($2::double[]) as weight,
              unnest($3::double[]) as by_calls)
            using (key) group by 1""",
            [list(column) for column in zip(*weights, strict=True)],
        ).fetchall()
        found = np.zeros(self.slots)
        for slot, value in rows:
            found[slot] = value
        return found


def statement_costs(change: Change, interval: Interval, *, hourly: bool) -> StatementCosts | None:
    """Return the statement costs of an interval, or None if statements were not read.

    Statements inside functions are counted in the statements that called the functions. With `hourly`, an hour is one
    sub-interval.
    """
    if not interval.has(change.view):
        return None
    spans = spans_of(interval, change.view, hourly=hourly)
    relation, columns = interval.sums.relation(change.view, folded=False)
    known = {column.name for column in columns}
    time = next((pair for pair in change.times if pair[0] in known), None)
    if not relation or time is None or not spans:
        return None
    source = _table(change, interval, relation, time, spans, nested="toplevel" in known)
    key = next(column.type for column in columns if column.name == KEYS[interval.before.engine])
    rows = interval.connection.execute(
        f"select key::varchar, sum(calls), sum(ms), sum(work), count(*) from {source} where ms is not null group by 1"
    ).fetchall()
    totals = {name: StatementTotal(calls, ms, work, slots) for name, calls, ms, work, slots in rows}
    return StatementCosts(totals, sum(s for span in spans for _, s in span), len(spans), interval, source, key)


def _table(
    change: Change, interval: Interval, relation: str, time: tuple[str, float], spans: Sequence[Span], *, nested: bool
) -> str:
    """Create a table of calls and milliseconds by statement and sub-interval, and return its name."""
    source, key, calls = quoted("statement_costs"), quoted(KEYS[interval.before.engine]), quoted(change.calls)
    parts = [(number, at) for at, span in enumerate(spans) for number, _ in span]
    # Where each statement has one row in a slot, there is nothing to add up.
    single = len(parts) == len(spans) and _has_single_rows(change, interval, key)
    added, grouped = ("", "") if single else ("sum", " group by all")
    interval.connection.execute(
        f"""create or replace temp table {source} as
        select {key} as key, slot, {added}({calls})::double as calls,
          {added}({quoted(time[0])})::double * {time[1]} as ms, coalesce({added}({change.work_sql})::double, 0) as work
        from {relation} s join (select unnest($1::bigint[]) as part, unnest($2::integer[]) as slot) g using (part)
        where {calls} > 0 and {key} is not null{" and toplevel is not false" if nested else ""}{grouped}""",
        [[number for number, _ in parts], [at for _, at in parts]],
    )
    return source


def _has_single_rows(change: Change, interval: Interval, key: str) -> bool:
    """Return True if no two rows of the view of statements have the same identifier at any time of the interval."""
    found = interval.query(f"select count({key}) = count(distinct {key}) as single from {change.view}", change.view)
    return bool(found[0]["single"])
