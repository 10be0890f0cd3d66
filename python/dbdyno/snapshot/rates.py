"""Rates of each object of a view in each sub-interval of a stretch: what comparisons of periods are made of.

DuckDB adds up and divides; what comes out is an array of so many objects by so many sub-intervals, for the
objects that are asked for. A sub-interval in which the view's counters were lost gives no value; one in
which an object has no row gives zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, groupby
from typing import TYPE_CHECKING, Any

from dbdyno.errors import EvidenceError
from dbdyno.snapshot.difference import quoted
from dbdyno.snapshot.interval import Interval
from dbdyno.snapshot.view import LOSSES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HOUR_US = 3600 * 10**6
_TABLES = count()


class Rates:
    """Rates per second of some counters, by object. `seconds`: how long each value's time was; `measured`: the
    measures that the view has; `means`: of each measure, the mean rate of each object."""

    def __init__(self, one: Interval, table: str, seconds: Sequence[float], measures: Sequence[str]) -> None:
        self._one = one
        self._table = table
        self.seconds = seconds
        self.measured = tuple(measures)
        self.means = self._means()

    def _means(self) -> dict[str, dict[str, float]]:
        sums = ", ".join(f"sum({quoted(name)}) as {quoted(name)}" for name in self.measured)
        rows = self._one.query(f"select object, {sums} from {self._table} group by 1 order by 1")
        count = len(self.seconds)
        return {name: {row["object"]: float(row[name] or 0.0) / count for row in rows} for name in self.measured}

    def rename(self, names: Mapping[str, str]) -> None:
        """Adds the rates of some objects to those of others, which stand for them."""
        if not names:
            return
        sums = ", ".join(f"sum(r.{quoted(name)}) as {quoted(name)}" for name in self.measured)
        made = quoted(f"rates_{next(_TABLES)}")
        self._one.connection.execute(
            f"create temp table {made} as select coalesce(n.other, r.object) as object, slot, {sums}"
            f" from {self._table} r"
            " left join (select unnest($1::varchar[]) as object, unnest($2::varchar[]) as other) n using (object)"
            " group by all",
            [list(names), list(names.values())],
        )
        self.close()
        self._table = made
        self.means = self._means()

    def close(self) -> None:
        """Frees the table that `values` reads."""
        self._one.connection.execute(f"drop table {self._table}")

    def values(self, measure: str, objects: Sequence[str]) -> NDArray[np.float64]:
        """The rates of these objects, a row each, zero where there is none."""
        import numpy as np

        found = np.zeros((len(objects), len(self.seconds)))
        cursor = self._one.connection.execute(
            f"select o.place, r.slot, r.{quoted(measure)} as rate from {self._table} r"
            " join (select unnest($1::varchar[]) as object, unnest(range(len($1::varchar[]))) as place) o"
            f" using (object) where r.{quoted(measure)} <> 0",
            [list(objects)],
        )
        rows = cursor.fetchnumpy()
        found[rows["place"].astype(np.int64), rows["slot"].astype(np.int64)] = rows["rate"]
        return found


def rates(
    one: Interval, view: str, by: Sequence[str], wanted: Mapping[str, Sequence[str]], *, hourly: bool = False
) -> Rates | None:
    """Those of the first column of `wanted` that the view has, by measure; None where it has none, or not all of
    `by`. `hourly`: a value for each hour, not for each sub-interval."""
    if not one.has(view):
        return None
    source, columns = one.sums.relation(view, folded=False)
    known = {c.name for c in columns}
    taken = {label: next((n for n in names if n in known), None) for label, names in wanted.items()}
    having = {label: column for label, column in taken.items() if column is not None}
    if not having or not set(by) <= known:
        return None
    spans = _spans(one, view, hourly=hourly)
    seconds = [sum(elapsed for _, elapsed in span) for span in spans]
    if hourly:
        source = one.sums.hourly(view, {number for span in spans for number, _ in span})
    table = quoted(f"rates_{next(_TABLES)}")
    if not _fill(one, table, source, by, having, spans, seconds):
        return None
    return Rates(one, table, seconds, list(having))


def _fill(
    one: Interval,
    table: str,
    source: str,
    by: Sequence[str],
    having: Mapping[str, str],
    spans: Sequence[Sequence[tuple[int, float]]],
    seconds: Sequence[float],
) -> bool:
    """Makes the table of rates by object and place in time."""
    import duckdb

    named = " || '.' || ".join(f"{quoted(column)}::varchar" for column in by)
    sums = ", ".join(
        f"coalesce(sum({quoted(column)})::double, 0) / any_value(g.seconds) as {quoted(label)}"
        for label, column in having.items()
    )
    added = ", ".join(f"sum({quoted(label)}) as {quoted(label)}" for label in having)
    keys = ", ".join(quoted(column) for column in by)
    good = [(number, at) for at, span in enumerate(spans) for number, _ in span]
    given = "unnest($1::bigint[]) as part, unnest($2::integer[]) as slot, unnest($3::double[]) as seconds"
    try:
        one.connection.execute(
            f"create temp table {table} as select {named} as object, slot, {added}"
            f" from (select {keys}, g.slot, {sums} from {source} s"
            f" join (select {given}) g using (part) group by all) where object is not null group by all",
            [[number for number, _ in good], [at for _, at in good], [seconds[at] for _, at in good]],
        )
    except duckdb.Error as error:
        raise EvidenceError(
            str(error).splitlines()[0], where=f"snapshots {one.before.number} to {one.after.number}"
        ) from error
    return bool(good)


def _spans(one: Interval, view: str, *, hourly: bool) -> list[list[tuple[int, float]]]:
    """What makes a value: numbers and seconds of its sub-intervals, without those in which the counters were lost."""
    scopes = (one.after.views[view].get("scope"), f"view:{view}")
    good = [part for part in one.sums.parts() if not _lost(part, scopes)]
    groups = groupby(good, key=lambda part: part["at_us"] // HOUR_US if hourly else part["number"])
    return [[(part["number"], part["elapsed_ns"] / 1e9) for part in group] for _, group in groups]


def _lost(part: dict[str, Any], scopes: tuple[Any, ...]) -> bool:
    return any(scope in scopes and word in LOSSES for scope, _, word, *_ in part["verdicts"])
