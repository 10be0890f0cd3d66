"""The differences of many neighbouring snapshots at once: a table per view, with a `part` per sub-interval.

A part is identified by the number of its later snapshot. A row in which nothing changed is left out: its counts are
zero. Each sub-interval has separate verdicts, so that a reset affects only that sub-interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import SnapshotError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.sql_text import literal, quoted
from dbdyno.evidence.memory import close_tables, row_dicts, tables_connection
from dbdyno.snapshot.engines.view import Column, Verdict
from dbdyno.snapshot.reading.difference import SUBTRACTED, Sides, difference_sql
from dbdyno.snapshot.reading.ends import NO_VIEW, Ends, create_scope_table, scope_rows
from dbdyno.snapshot.store.folder import Place, Snapshot, relation_of_places

if TYPE_CHECKING:
    from dbdyno.snapshot.engines.metric import Metric

PART = Column("part", "key", "count", "BIGINT")
"""Column that says to which sub-interval a row belongs."""


class Batch:
    """Sub-intervals between consecutive snapshots; `pairs` are those whose duration is known."""

    part_keys = ("part",)

    def __init__(self, chain: Sequence[Snapshot]) -> None:

        self.connection = tables_connection()
        self.pairs: list[Ends] = []
        peeked: Any = {}
        self._seen: dict[str, str | None] = {}
        for first, last in pairwise(chain):
            try:
                self.pairs.append(self._pair(first, last, chain, peeked))
            except SnapshotError:  # the clock went back by an unknown time, so no rate is known
                continue
        self.connection.execute("set schema = 'main'")
        self.engine: Any = self.pairs[0].engine if self.pairs else None
        self._made: dict[str, bool] = {}
        self._note_gaps()
        create_scope_table(self.connection, [row for pair in self.pairs for row in scope_rows(pair, pair.after.number)])

    def _pair(self, first: Snapshot, last: Snapshot, chain: Sequence[Snapshot], peeked: Any) -> Ends:
        """Return a pair of snapshots with its verdicts."""
        pair = Ends(first, last, self.connection, chain, peeked, self._seen)
        pair.verdicts = dict(pair.engine.judge(pair))
        return pair

    def views(self) -> list[str]:
        """Return the views with counters."""
        return sorted({v for pair in self.pairs for v in pair.after.views if counter_columns(pair.after.columns(v))})

    def pairs_with(self, view: str) -> list[Ends]:
        """Return the pairs with a difference of a view."""
        return [pair for pair in self.pairs if pair.has(view)]

    def has(self, view: str) -> bool:
        """Return True if any pair has the view."""
        return bool(self.pairs_with(view))

    def counters(self, view: str) -> list[Column]:
        """Return the counters that a view has in any pair."""
        return list(
            {c.name: c for pair in self.pairs_with(view) for c in counter_columns(pair.after.columns(view))}.values()
        )

    def columns(self, view: str) -> set[str]:
        """Return the view's columns that exist in every pair of snapshots that has the view."""
        known = [pair.columns(view) for pair in self.pairs_with(view)]
        return set.intersection(*known) if known else set()

    def table(self, view: str) -> str:
        """Return the table with the differences of a view, which is created on first use."""
        if view not in self._made:
            self._made[view] = True
            queries = [self._group_sql(sides, pairs) for sides, pairs in self._groups(view)]
            self.connection.execute(f"create table {quoted(view)} as {' union all by name '.join(queries)}")
            refine = getattr(self.engine, "refine", None)
            if refine is not None:
                refine(self, view)
        return quoted(view)

    def query(self, sql: str, *views: str) -> list[JsonObject]:
        """Return the rows of a query over the tables of `views`."""
        for view in views:
            self.table(view)
        return row_dicts(self.connection.execute(sql))

    def metrics(self) -> Sequence[Sequence[tuple[Metric, float | None]]]:
        """Return the metrics of each pair."""
        found: Sequence[Sequence[tuple[Metric, float | None]]] = self.engine.part_metrics(self)
        return found

    def close(self) -> None:
        """Free the tables."""
        close_tables(self.connection)

    def _note_gaps(self) -> None:
        """Add a verdict to each pair that lacks a view which other pairs have."""
        for view in self.views():
            for pair in self.pairs:
                missing = pair.missing_reason(view)
                if missing is not None:
                    why = "is not on this server" if missing[0] == NO_VIEW.format(view) else missing[0]
                    pair.verdicts.setdefault((f"view:{view}", None), Verdict("partial", f"{view} {why}"))

    def _groups(self, view: str) -> Iterable[tuple[Sides, list[Ends]]]:
        """Return the pairs grouped by the view's columns, since each group takes one query."""
        found: dict[Sides, list[Ends]] = {}
        for pair in self.pairs_with(view):
            found.setdefault(pair.sides(view), []).append(pair)
        return found.items()

    def _group_sql(self, sides: Sides, pairs: list[Ends]) -> str:
        view = sides.name
        moved = [pair for pair in pairs if pair.before.place(view) != pair.after.place(view) or _judged(pair, view)]
        keyed = replace(sides, before=(PART, *sides.before), after=(PART, *sides.after))
        before = _parts([(one.before.place(view), one.after.number) for one in moved], sides.before)
        after = _parts([(one.after.place(view), one.after.number) for one in moved], sides.after)
        names = [quoted(c.name) for c in counter_columns(sides.after)]
        still = " and ".join(f"coalesce({name}, 0) = 0" for name in names)
        return (
            f"(from ({difference_sql(keyed, before, after)}) where not (verdict = 'ok' and life = 'kept' and {still}))"
        )


def counter_columns(columns: Iterable[Column]) -> list[Column]:
    """Return the columns that are subtracted and added up."""
    return [column for column in columns if column.kind in SUBTRACTED]


def _judged(pair: Ends, view: str) -> bool:
    """Return True if a verdict affects a view's rows."""
    scope = pair.after.views[view].get("scope")
    return any(of in (scope, f"view:{view}") and one.word != "ok" for (of, _), one in pair.verdicts.items())


def _parts(places: Sequence[tuple[Place | None, int]], columns: Sequence[Column]) -> str:
    """Return an SQL relation of the rows at these places, each with the number of its part; parts may share a place."""
    shown = ", ".join(f"{quoted(c.name)}" for c in columns)
    known = [(place, part) for place, part in places if place is not None]
    if not known:
        nulls = ", ".join(f"null::{c.type} as {quoted(c.name)}" for c in columns)
        return f"(select null::bigint as part, {nulls} where false)"
    names = ", ".join(f"({literal(path)}, {inside}, {part})" for (path, inside), part in known)
    source = relation_of_places(place for place, _ in known)
    return f"(select m.part, {shown} from {source} r join (values {names}) m(_file, _in, part) using (_file, _in))"
