"""Rates of each object of a view in each sub-interval of an interval, for comparisons of periods.

DuckDB finds the rows of the requested objects, numpy adds them up; the result is an array of objects by sub-intervals.
A sub-interval in which the view's counters were lost gives no value; one in which an object has no row gives zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import EvidenceError
from dbdyno.base.sql_text import quoted
from dbdyno.snapshot.engines.view import LOSSES
from dbdyno.snapshot.reading.interval import Interval

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    from numpy.typing import NDArray

HOUR_US = 3600 * 10**6
_TABLES = count()
Span = list[tuple[int, float]]
"""Numbers and seconds of the sub-intervals that are combined into one value."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts in the rows of some objects, and where they belong in the array of rates.

    Attributes:
        lines: Lines of the array of rates that belong to each object: one for each of its keys.
        cells: For each row, its cell of that array.
        values: For each measure, the count of each row.
    """

    lines: Mapping[str, Sequence[int]]
    cells: NDArray[np.intp]
    values: Mapping[str, NDArray[np.float64]]


class Rates:
    """Rates per second of some counters, by object.

    Only means are held in memory for all objects: ten thousand statements by the minutes of a day would take a hundred
    megabytes.

    Attributes:
        seconds: Duration that each value covers.
        measured: The measures that the view has.
        means: For each measure, the rate of each object over the whole time.
    """

    def __init__(
        self,
        interval: Interval,
        source: str,
        folded: str,
        by: Sequence[str],
        having: Mapping[str, str],
        spans: Sequence[Span],
    ) -> None:
        self._one = interval
        self._source = source
        self._by = by
        self._having = having
        self._others: dict[str, list[str]] = {}
        self._kept: Counts | None = None
        self.seconds = [sum(elapsed for _, elapsed in span) for span in spans]
        self.measured = tuple(having)
        # The list is kept with its table, so that no other one can have its identity.
        _, self._slots = interval.compute_once(f"slots of {id(spans)}", lambda: (spans, self._table_of(spans)))
        self._objects, self.means = self._means(folded)

    def rename(self, names: Mapping[str, str]) -> None:
        """Add the rates of some objects to those of others; `names` maps each old name to the new one."""
        for old, new in names.items():
            self._others.setdefault(new, []).append(old)
            for means in self.means.values():
                if old in means:
                    means[new] = means.get(new, 0.0) + means.pop(old)

    def prefetch(self, objects: Iterable[str]) -> None:
        """Cache what `values` needs for these objects; without this, each call of it reads the store."""
        self._kept = self._counts(self.measured, objects)

    def values(self, measure: str, objects: Sequence[str]) -> NDArray[np.float64]:
        """Return the rates of these objects, one row per object; zeros where an object has no rate."""
        import numpy as np

        counts = self._kept or self._counts([measure], objects)
        slots = len(self.seconds)
        size = sum(map(len, counts.lines.values())) * slots
        rates = np.bincount(counts.cells, counts.values[measure], size).reshape(-1, slots) / np.array(self.seconds)
        found = np.zeros((len(objects), slots))
        for at, one in enumerate(objects):
            for line in (line for name in self._standing_for(one) for line in counts.lines.get(name, ())):
                found[at] += rates[line]
        return found

    def close(self) -> None:
        """Free the cached counts and drop the table of objects that `values` reads."""
        self._kept = None
        self._one.connection.execute(f"drop table {self._objects}")

    def _table_of(self, spans: Sequence[Span]) -> str:
        """Create a table with the slot of each sub-interval, which is the index of its value."""
        good = [(number, at) for at, span in enumerate(spans) for number, _ in span]
        return self._table(
            "select unnest($1::bigint[]) as part, unnest($2::integer[]) as slot",
            [[number for number, _ in good], [at for _, at in good]],
        )

    def _standing_for(self, one: str) -> list[str]:
        return [one, *self._others.get(one, ())]

    def _means(self, folded: str) -> tuple[str, dict[str, dict[str, float]]]:
        """Return a table with the keys of each object, and the mean rate of each object by measure.

        `folded` has a row per hour for complete hours, which is a sixtieth of the rows per minute.
        """
        keys, added = (", ".join(quoted(name) for name in names) for names in (self._by, self.measured))
        named = " || '.' || ".join(f"{quoted(column)}::varchar" for column in self._by)
        sums = ", ".join(
            f"coalesce(sum({quoted(column)}::double), 0) as {quoted(label)}" for label, column in self._having.items()
        )
        inner = f"select {keys}, {sums} from {folded} s semi join {self._slots} using (part) group by all"
        objects = self._table(f"select {named} as object_, * from ({inner}) where object_ is not null", [])
        means: dict[str, dict[str, float]] = {name: {} for name in self.measured}
        seconds = sum(self.seconds)
        for one, *values in self._execute(f"select object_, {added} from {objects} order by 1").fetchall():
            for name, value in zip(self.measured, values, strict=True):
                means[name][one] = means[name].get(one, 0.0) + value / seconds
        return objects, means

    def _counts(self, measures: Sequence[str], objects: Iterable[str]) -> Counts:
        """Return the counts of these objects, and of those added to them, in each row."""
        wanted = list(dict.fromkeys(name for one in objects for name in self._standing_for(one)))
        keys = ", ".join(quoted(column) for column in self._by)
        lines = self._table(
            f"select object_, {keys}, row_number() over () - 1 as line_ from {self._objects}"
            " where object_ in (select unnest($1::varchar[]))",
            [wanted],
        )
        found: dict[str, list[int]] = {}
        for name, line in self._execute(f"select object_, line_ from {lines} order by line_").fetchall():
            found.setdefault(name, []).append(line)
        columns = {label: quoted(self._having[label]) for label in measures}
        values = ", ".join(f"coalesce({column}::double, 0) as {quoted(label)}" for label, column in columns.items())
        rows = self._execute(
            f"select line_ * {len(self.seconds)} + slot as cell_, {values}"
            f" from {self._source} s join {self._slots} g using (part) join {lines} l using ({keys})"
        ).fetchnumpy()
        self._one.connection.execute(f"drop table {lines}")
        return Counts(found, rows["cell_"], {label: rows[label] for label in measures})

    def _table(self, sql: str, given: list[Any]) -> str:
        name = quoted(f"rates_{next(_TABLES)}")
        self._execute(f"create temp table {name} as {sql}", given)
        return name

    def _execute(self, sql: str, given: list[Any] | None = None) -> duckdb.DuckDBPyConnection:
        from dbdyno.evidence.duck import duckdb

        try:
            return self._one.connection.execute(sql, given)
        except duckdb.Error as error:
            where = f"snapshots {self._one.before.number} to {self._one.after.number}"
            raise EvidenceError(str(error).splitlines()[0], where=where) from error


def rates(
    interval: Interval, view: str, by: Sequence[str], wanted: Mapping[str, Sequence[str]], *, hourly: bool = False
) -> Rates | None:
    """Return the rates of objects, identified by the columns `by`; None if the view lacks one of them or all counters.

    `wanted` maps each measure to its possible columns; the first one that the view has is used. `hourly` gives a value
    per hour instead of one per sub-interval.
    """
    if not interval.has(view):
        return None
    source, columns = interval.sums.relation(view, folded=False)
    known = {c.name for c in columns}
    taken = {label: next((n for n in names if n in known), None) for label, names in wanted.items()}
    having = {label: column for label, column in taken.items() if column is not None}
    if not having or not set(by) <= known:
        return None
    spans = spans_of(interval, view, hourly=hourly)
    if not spans:
        return None
    folded = interval.sums.hourly(view, {number for span in spans for number, _ in span})
    return Rates(interval, folded if hourly else source, folded, by, having, spans)


def spans_of(interval: Interval, view: str, *, hourly: bool) -> list[Span]:
    """Return, for each value of a view's rates, the numbers and seconds of the sub-intervals that it covers.

    Sub-intervals in which the view's counters were lost are left out; `hourly` combines the sub-intervals of an hour.
    Views with the same sub-intervals left out share the list, which must not be changed.
    """
    judged = [part for part in interval.sums.parts() if part["verdicts"]]
    scopes = (interval.after.views[view].get("scope"), f"view:{view}")
    lost = [part["number"] for part in judged if _lost(part, scopes)]
    return interval.compute_once(f"spans {hourly} without {lost}", lambda: _spans(interval, scopes, hourly=hourly))


def _spans(interval: Interval, scopes: tuple[Any, ...], *, hourly: bool) -> list[Span]:
    good = [part for part in interval.sums.parts() if not (part["verdicts"] and _lost(part, scopes))]
    if not hourly:
        return [[(part["number"], part["elapsed_ns"] / 1e9)] for part in good]
    groups = groupby(good, key=lambda part: part["at_us"] // HOUR_US)
    return [[(part["number"], part["elapsed_ns"] / 1e9) for part in group] for _, group in groups]


def _lost(part: Mapping[str, Any], scopes: tuple[Any, ...]) -> bool:
    return any(scope in scopes and word in LOSSES for scope, _, word, *_ in part["verdicts"])
