"""What happened between two snapshots of one target: a DuckDB table per view, with verdicts.

    with Interval(store, first, last) as interval:
        interval.query("select datname, xact_commit, verdict from pg_stat_database")

`before` and `after` are the two ends. If there are snapshots between them, counts are added up over the sub-intervals,
so that a reset or a crash affects only its own sub-interval; how much of the time is covered is reported. The snapshots
in between also provide the samples, and figures over time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dbdyno.base.closeable import Closeable
from dbdyno.base.errors import EvidenceError, SnapshotError
from dbdyno.base.json_types import TableRow
from dbdyno.base.signals import interruptible
from dbdyno.base.sql_text import quoted
from dbdyno.evidence.memory import close_tables, current_database, tables_connection
from dbdyno.snapshot.engines.view import LOSSES, Column
from dbdyno.snapshot.reading import clock
from dbdyno.snapshot.reading.difference import difference_sql, union_columns
from dbdyno.snapshot.reading.ends import Ends, ScopeRow, create_scope_table, scope_rows
from dbdyno.snapshot.store.folder import Snapshot, Store, rows_of

if TYPE_CHECKING:
    import duckdb

    from dbdyno.snapshot.reading.sums.chain import Chain
    from dbdyno.snapshot.reading.sums.chunk import Chunk


T = TypeVar("T")
_SCHEMAS = count()


class Interval(Ends, Closeable):
    """Two snapshots of one target and everything between them; a context manager.

    Args:
        store: The store.
        first: The earlier snapshot.
        last: The later snapshot.
        chain: All snapshots from the first to the last, if they are known.
        connection: Where the tables are created; None for a database that is freed with the interval.
        sums: The sums of the chain, if they are open already.

    Raises:
        SnapshotError: The two are not of one target, or not in this order.
    """

    def __init__(
        self,
        store: Store,
        first: Snapshot,
        last: Snapshot,
        chain: list[Snapshot] | None = None,
        *,
        connection: duckdb.DuckDBPyConnection | None = None,
        sums: Chain | None = None,
    ) -> None:

        super().__init__(first, last, connection or tables_connection())
        self.store = store
        self._owned = connection is None
        self._made: dict[str, bool] = {}
        self._scopes: list[ScopeRow] | None = None
        self._chain = chain
        self._sums = sums
        self._bridged: set[str] = set()
        self._halves: dict[int, tuple[Interval, Interval]] = {}
        self._once: dict[str, Any] = {}
        stepped = clock.clock_verdict(self.chain)
        if len(self.chain) > 2:
            self.verdicts = self.sums.verdicts()
            self._bridge()
        else:
            self.verdicts = dict(self.engine.judge(self))
            self._scope_rows()
        if stepped is not None:
            self.verdicts["clock", None] = stepped

    def _bridge(self) -> None:
        """Keep the difference of a view that both ends have but a snapshot between them lacks.

        The ends must prove that nothing was lost in between.
        """
        lost = {scope for (scope, _), one in self.verdicts.items() if one.word in LOSSES}
        unread = {v for v in self.after.views if f"view:{v}" in lost and self.has(v) and self.sums.is_partly_unread(v)}
        if not unread:
            return
        with Interval(self.store, self.before, self.after, [self.before, self.after]) as ends:
            lost |= {scope for (scope, _), one in ends.verdicts.items() if one.word in LOSSES}
        self._bridged = {view for view in unread if not lost & {self.after.views[view].get("scope"), "cluster"}}
        for view in self._bridged:
            del self.verdicts[f"view:{view}", None]

    @property
    def inside(self) -> str:
        """Return the SQL condition on `at_us` for rows of `samples` between the two reads.

        If the clock stepped between the two reads, the condition selects all rows.
        """
        if self.verdict("clock").word != "ok":
            return "true"
        return f"at_us > {self.before.at_ns // 1000} and at_us <= {self.after.at_ns // 1000}"

    @property
    def chain(self) -> list[Snapshot]:
        """Return all snapshots of the target from the first to the last."""
        if self._chain is None:
            from dbdyno.snapshot.reading.sums.index import between

            self._chain = between(self.store, self.before, self.after)
        return self._chain

    @property
    def sums(self) -> Chain:
        """Return the `Chain` of sub-intervals, which provides each sub-interval and their sums."""
        if self._sums is None:
            from dbdyno.snapshot.reading.sums.chain import Chain

            self._sums = Chain(self.store, self.chain, Interval)
        return self._sums

    @cached_property
    def looks(self) -> int:
        """Return the number of looks: how often the sessions were sampled between the two ends."""
        return sum(one.looks for one in self.chain[1:])

    @cached_property
    def own_sessions(self) -> list[int]:
        """Return the server's identifiers of the sessions that took these snapshots."""
        found = {one.own_session for one in self.chain}
        return sorted(one for one in found if one is not None)

    def compute_once(self, name: str, make: Callable[[], T]) -> T:
        """Return the result of `make()`, computed once and cached under `name`; several sections need it."""
        if name not in self._once:
            self._once[name] = make()
        return cast("T", self._once[name])

    def halves(self, at: int) -> tuple[Interval, Interval]:
        """Return the intervals before and after a snapshot of the chain; closing this interval frees them."""
        if at not in self._halves:
            chains = self.chain[: at + 1], self.chain[at:]
            made = (Interval(self.store, one[0], one[-1], one, connection=self.inner_connection()) for one in chains)
            self._halves[at] = (next(made), next(made))
        return self._halves[at]

    def inner_connection(self) -> duckdb.DuckDBPyConnection:
        """Return a connection to an empty schema of this interval's database."""
        schema = f"inner_{next(_SCHEMAS)}"
        inner = interruptible(self.connection.cursor())
        inner.execute(f"use {current_database(self.connection)}")
        inner.execute(f"create schema {schema}")
        inner.execute(f"set schema = '{schema}'")
        return inner

    def table(self, view: str) -> str:
        """Return the name of the table with a view's difference, which is created on first use.

        Raises:
            SnapshotError: An end does not have the view.
            EvidenceError: A file cannot be read.
        """
        if view not in self._made:
            self._make(view)
        return quoted(view)

    def query(self, sql: str, *views: str) -> list[TableRow]:
        """Return the rows of a query whose tables are the differences of `views`.

        Raises:
            SnapshotError: An end does not have a view.
            EvidenceError: The query fails, or a file cannot be read.
        """
        for view in views:
            self.table(view)
        return super().query(sql)

    def counters(self, view: str) -> list[Column]:
        """Return the counters of a view, the columns that are subtracted."""
        from dbdyno.snapshot.reading.difference import SUBTRACTED

        return [column for column in self.after.columns(view) if column.kind in SUBTRACTED]

    def samples(self, view: str, columns: Sequence[Column], chunks: list[Chunk] | None = None) -> tuple[str, int]:
        """Return an SQL relation with the rows sampled between the two ends, and the number of looks.

        `chunks` are the hours to read, if the clock did not step; None reads all.
        """
        inside = self.chain[1:]
        kept = len(inside) > 1
        seen = self.sums.samples(view, exact=self.inside == "true", chunks=chunks) if kept else rows_of(inside, view)
        if not seen:
            return union_columns(columns), self.looks
        return f"(from {union_columns(columns)} union all by name from {seen})", self.looks

    def close(self) -> None:
        """Free the tables."""
        for half in (one for pair in self._halves.values() for one in pair):
            half.close()
            half.connection.close()
        if self._sums is not None:
            self._sums.close()
        if self._owned:
            close_tables(self.connection)

    def _make(self, view: str) -> None:
        from dbdyno.evidence.duck import duckdb

        missing = self.missing_reason(view)
        if missing is not None:
            raise SnapshotError(f"{view} {missing[0]}", next_step=missing[1])
        added = len(self.chain) > 2 and bool(self.counters(view)) and view not in self._bridged
        try:
            if added:
                sql = self.sums.total_sql(self, view)
            else:
                scoped = any(row[1] == view for row in self._scope_rows())
                sql = difference_sql(self.sides(view), *self.ends(view), scoped=scoped)
            self.connection.execute(f"create table {quoted(view)} as {sql}")
        except duckdb.Error as error:
            raise EvidenceError(
                f"cannot be read: {str(error).splitlines()[0]}",
                where=f"{view} of snapshots {self.before.number} and {self.after.number}",
                next_step="take new snapshots: a file of these snapshots was changed or removed",
            ) from error
        self._made[view] = True
        refine = getattr(self.engine, "refine", None)
        if refine is not None and not added:
            refine(self, view)

    def _scope_rows(self) -> list[ScopeRow]:
        """Return the verdicts of scopes, a row per view and instance; on first use the table of them is created."""
        if self._scopes is None:
            self._scopes = scope_rows(self, 0)
            if self._scopes:
                create_scope_table(self.connection, self._scopes)
        return self._scopes
