"""Two snapshots of one target: the views that both have, and the facts and columns from which verdicts are derived.

Little is read: to judge epochs, an engine reads a few columns of small views with `peek`. If many neighbouring pairs
are judged together, the pairs share the rows that were read, and one query reads a view for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import EvidenceError, SnapshotError
from dbdyno.base.json_types import TableRow
from dbdyno.base.sql_text import quoted
from dbdyno.evidence.memory import row_dicts
from dbdyno.snapshot.engines.registry import engine
from dbdyno.snapshot.engines.view import OK, WORDS, Verdict
from dbdyno.snapshot.reading import clock
from dbdyno.snapshot.reading.difference import Sides, union_columns
from dbdyno.snapshot.store.folder import Place, Snapshot, relation_of_places

NO_VIEW = "this server has no {}"
CHECK_STEP = "check the store with `dbdyno snap check`"
_KIND = re.compile(r"^[A-Z][A-Za-z ]* Error: ")
_NO_COLUMN = re.compile(r'Binder Error: .{0,200}?column (?:named )?"([^"]+)"', re.S)

if TYPE_CHECKING:
    import duckdb

    Peeked = dict[tuple[Place, tuple[str, ...]], list[tuple[Any, ...]]]


class Ends:
    """Two snapshots of one target.

    `siblings` are other snapshots that will be judged too, in pairs that share the caches `peeked` and `seen` (the
    state of files).

    Raises:
        SnapshotError: The two are not of one target or not in this order, or the time between them is not known.
    """

    part_keys: tuple[str, ...] = ()
    """Columns that distinguish the pairs if a table holds several."""

    def __init__(
        self,
        first: Snapshot,
        last: Snapshot,
        connection: duckdb.DuckDBPyConnection,
        siblings: Sequence[Snapshot] = (),
        peeked: Peeked | None = None,
        seen: dict[str, str | None] | None = None,
    ) -> None:
        _check(first, last)
        self.before = first
        self.after = last
        self.engine: Any = engine(first.engine)
        self.connection = connection
        self.verdicts: dict[tuple[str, str | None], Verdict] = {}
        self._siblings = siblings or (first, last)
        self._peeked: Peeked = {} if peeked is None else peeked
        self._seen = seen
        self._missing: dict[str, tuple[str, str | None] | None] = {}

    @property
    def seconds(self) -> float:
        """Return the time between the two reads, by the machine's monotonic clock if both snapshots have its time."""
        return clock.elapsed_ns(self.before, self.after) / 1e9

    def verdict(self, scope: str, value: str | None = None) -> Verdict:
        """Return the verdict of a scope, or of its instance `value`."""
        return self.verdicts.get((scope, value), OK)

    def missing_reason(self, view: str) -> tuple[str, str | None] | None:
        """Return why a view has no difference, and what would provide one; None if it has one. The result is cached."""
        if view not in self._missing:
            self._missing[view] = self._why_missing(view)
        return self._missing[view]

    def _why_missing(self, view: str) -> tuple[str, str | None] | None:
        for end in (self.before, self.after):
            record = end.views.get(view)
            if record is None:
                return NO_VIEW.format(view), None
            problem = end.problem(view, self._seen)
            if problem is not None:
                return f"could not be read in snapshot {end.number}: {problem[0]}", problem[1]
        return None

    def has(self, view: str) -> bool:
        """Return True if both ends have the view."""
        return self.missing_reason(view) is None

    def columns(self, view: str) -> set[str]:
        """Return the columns of the view's difference, which are the columns of the later end.

        A counter that the earlier end did not have (before an upgrade) is NULL in the difference.
        """
        return {c.name for c in self.after.columns(view)} if self.has(view) else set()

    def sides(self, view: str) -> Sides:
        """Return the columns on both sides that are needed to compute the view's difference."""
        record = self.after.views[view]
        return Sides(
            view,
            self.before.columns(view),
            self.after.columns(view),
            record["appearance"],
            record.get("scope_by"),
        )

    def ends(self, view: str) -> tuple[str, str]:
        """Return the two SQL relations with a view's rows as stored."""
        return relation(self.before, view), relation(self.after, view)

    def query(self, sql: str, *views: str) -> list[TableRow]:
        """Return the rows of a query as dicts.

        Raises:
            EvidenceError: The query fails, for example because a file is damaged.
        """
        return row_dicts(self._execute(sql))

    def peek(self, view: str, end: int, *columns: str) -> list[tuple[Any, ...]]:
        """Return some columns of all rows of a view at one end (0: earlier, 1: later); NULL for missing columns."""
        one = (self.before, self.after)[end]
        place = one.place(view)
        if place is None:
            return []
        if (place, columns) not in self._peeked:
            self._look(view, one, columns)
        return self._peeked[place, columns]

    def _look(self, view: str, snapshot: Snapshot, columns: tuple[str, ...]) -> None:
        """Read the columns from one snapshot and from all siblings whose view has the same columns."""
        had = snapshot.columns(view)
        alike = [snapshot, *(other for other in self._siblings if other.columns(view) == had)]
        places = {place: other for other in alike if (place := other.place(view))}
        there = [place for place, other in places.items() if other.problem(view, self._seen) is None]
        names = {column.name for column in had}
        shown = ", ".join(quoted(name) if name in names else "null" for name in columns)
        for place in places:
            self._peeked[place, columns] = []
        if there:
            for path, inside, *row in self._execute(
                f"select _file, _in, {shown} from {relation_of_places(there)}"
            ).fetchall():
                if (path, inside) in places:
                    self._peeked[(path, inside), columns].append(tuple(row))

    def _execute(self, sql: str) -> duckdb.DuckDBPyConnection:
        from dbdyno.evidence.duck import duckdb

        try:
            return self.connection.execute(sql)
        except duckdb.Error as error:
            where = f"snapshots {self.before.number} and {self.after.number} of {self.before.target}"
            raise EvidenceError(_reason(error), where=where, next_step=CHECK_STEP) from error


def _reason(error: Exception) -> str:
    """Return why a query failed, in words that do not mention the database engine that reads the files."""
    text = str(error).splitlines()[0]
    if column := _NO_COLUMN.match(str(error)):
        return f"they lack the column {column[1]}"
    return f"their rows cannot be read: {_KIND.sub('', text)}"


def relation(end: Snapshot, view: str) -> str:
    """Return the SQL relation with the rows of a view at one end, as stored."""
    return end.relation(view) or union_columns(end.columns(view))


def _check(first: Snapshot, last: Snapshot) -> None:
    if first.target != last.target or first.engine != last.engine:
        raise SnapshotError(
            f"the snapshots belong to different targets: {first.number} to {first.target}, {last.number} to "
            f"{last.target}",
            next_step="name two snapshots of one target; see the target of each with `dbdyno snap list`",
        )
    if first.number >= last.number:
        raise SnapshotError(
            f"snapshot {last.number} is not later than {first.number}",
            next_step="name the earlier snapshot first",
        )
    if clock.elapsed_ns(first, last) <= 0:
        raise SnapshotError(
            f"snapshot {last.number} has an earlier time than {first.number}: the server's clock was set back, "
            f"and no other clock covers both, so the time between them is not known",
            next_step="report the intervals before and after the clock change separately; find the change with "
            "`dbdyno snap list`",
        )


ScopeRow = tuple[int, str, str | None, str, str]
"""A row of the table of verdicts."""


def scope_rows(ends: Ends, part: int) -> list[ScopeRow]:
    """Return the verdicts of two ends as rows: the gravest one for each view and instance of its scope."""
    worst: dict[tuple[str, str | None], Verdict] = {}
    for view, record in ends.after.views.items():
        for (scope, value), verdict in ends.verdicts.items():
            known = worst.get((view, value), OK)
            here = scope in (record.get("scope"), f"view:{view}")
            if here and WORDS.index(verdict.word) > WORDS.index(known.word):
                worst[view, value] = verdict
    return [(part, view, value, one.word, one.why) for (view, value), one in worst.items()]


def create_scope_table(connection: duckdb.DuckDBPyConnection, rows: list[ScopeRow]) -> None:
    """Create the table of verdicts; the rows are inserted by one statement, since each takes half a millisecond."""
    columns = {"part": "bigint", "view": "varchar", "value": "varchar", "word": "varchar", "why": "varchar"}
    connection.execute(f"create table scope_verdicts ({', '.join(map(' '.join, columns.items()))})")
    if rows:
        lists = ", ".join(f"unnest(${at}::{kind}[])" for at, kind in enumerate(columns.values(), 1))
        connection.execute(f"insert into scope_verdicts select {lists}", [list(one) for one in zip(*rows, strict=True)])
