"""What happened between two snapshots of one target: a DuckDB table per view, with verdicts.

    with Interval(store, first, last) as interval:
        interval.query("select datname, xact_commit, verdict from pg_stat_database")

`before` and `after` are the two ends; snapshots between give the samples, and figures over time.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dbdyno.errors import EvidenceError, SnapshotError
from dbdyno.snapshot import clock
from dbdyno.snapshot.difference import Sides, difference_sql, quoted, union_columns
from dbdyno.snapshot.engines import engine
from dbdyno.snapshot.store import Snapshot, Store, rows_of
from dbdyno.snapshot.view import OK, WORDS, Column, Verdict

if TYPE_CHECKING:
    import duckdb


class Interval:
    """Two snapshots of one target and what lies between them; a context manager.

    `chain`: all snapshots from the first to the last, where they are known. Raises `SnapshotError`
    where the two are not of one target, or not in this order.
    """

    def __init__(self, store: Store, first: Snapshot, last: Snapshot, chain: list[Snapshot] | None = None) -> None:
        import duckdb

        if first.target != last.target or first.engine != last.engine:
            raise SnapshotError(
                f"snapshot {first.number} is of {first.target}, {last.number} of {last.target}",
                next_step="a report is of one target; `dbdyno snap list` shows whose each is",
            )
        if first.number >= last.number:
            raise SnapshotError(
                f"snapshot {last.number} is not later than {first.number}",
                next_step="name the earlier one first",
            )
        if clock.elapsed_ns(first, last) <= 0:
            raise SnapshotError(
                f"snapshot {last.number} says an earlier time than {first.number}, and no other clock knows both:"
                " the server's clock was set back, so that the time between them is not known",
                next_step="report the time before and after the step: `dbdyno snap list` shows it",
            )
        self.store = store
        self.before = first
        self.after = last
        self.engine: Any = engine(first.engine)
        self.connection: duckdb.DuckDBPyConnection = duckdb.connect()
        self._made: dict[str, bool] = {}
        self._chain = chain
        stepped = clock.verdict(self.chain)
        self.verdicts: dict[tuple[str, str | None], Verdict] = dict(self.engine.judge(self))
        if stepped is not None:
            self.verdicts["clock", None] = stepped
        self._scope_table()

    @property
    def seconds(self) -> float:
        """The time between the two reads, by a clock that does not step where one knows both."""
        return clock.elapsed_ns(self.before, self.after) / 1e9

    @property
    def inside(self) -> str:
        """The condition for rows of `samples` between the two reads, as SQL on `at_us`. Where the
        clock stepped the files themselves are the border."""
        if self.verdict("clock").word != "ok":
            return "true"
        return f"at_us > {self.before.at_ns // 1000} and at_us <= {self.after.at_ns // 1000}"

    @property
    def chain(self) -> list[Snapshot]:
        """All snapshots of the target from the first to the last."""
        if self._chain is None:
            self._chain = self.store.between(self.before, self.after)
        return self._chain

    def verdict(self, scope: str, value: str | None = None) -> Verdict:
        """The verdict of a scope."""
        return self.verdicts.get((scope, value), OK)

    def missing(self, view: str) -> tuple[str, str | None] | None:
        """Why a view has no difference, and what would give it one; None where it has."""
        for end in (self.before, self.after):
            record = end.views.get(view)
            if record is None:
                return f"this server has no {view}", None
            problem = end.problem(view)
            if problem is not None:
                return f"could not be read in snapshot {end.number}: {problem[0]}", problem[1]
        return None

    def has(self, view: str) -> bool:
        """Whether both ends have the view."""
        return self.missing(view) is None

    def columns(self, view: str) -> set[str]:
        """The columns that both ends have."""
        return {c.name for c in self._sides(view).common} if self.has(view) else set()

    def table(self, view: str) -> str:
        """The name of the table with a view's difference, made on first use."""
        if view not in self._made:
            self._make(view)
        return quoted(view)

    def query(self, sql: str, *views: str) -> list[dict[str, Any]]:
        """Rows of a query over the differences of `views`, which it names as tables."""
        import duckdb

        for view in views:
            self.table(view)
        try:
            cursor = self.connection.execute(sql)
        except duckdb.Error as error:
            raise EvidenceError(
                str(error).splitlines()[0],
                where=f"snapshots {self.before.number} and {self.after.number} of {self.before.target}",
            ) from error
        names = [column[0] for column in cursor.description or []]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def samples(self, view: str, columns: Sequence[Column]) -> tuple[str, int]:
        """A relation with the rows that sampling between the two ends saw, and the number of
        looks."""
        inside = self.chain[1:]
        read = [one for one in inside if one.file(view) and one.problem(view) is None]
        looks = sum(int(one.manifest["cost"].get("looks") or 0) for one in inside)
        if not read:
            return union_columns(columns), looks
        return f"(from {union_columns(columns)} union all by name from {rows_of(read, view)})", looks

    def ends(self, view: str) -> tuple[str, str]:
        """The two raw relations of a view."""
        return tuple(_relation(end, view) for end in (self.before, self.after))  # type: ignore[return-value]

    def close(self) -> None:
        """Frees the tables."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _sides(self, view: str) -> Sides:
        record = self.after.views[view]
        return Sides(
            view,
            self.before.columns(view),
            self.after.columns(view),
            record["appearance"],
            record.get("scope_by"),
        )

    def _make(self, view: str) -> None:
        import duckdb

        missing = self.missing(view)
        if missing is not None:
            raise SnapshotError(f"{view} {missing[0]}", next_step=missing[1])
        before, after = self.ends(view)
        try:
            self.connection.execute(
                f"create table {quoted(view)} as {difference_sql(self._sides(view), before, after)}"
            )
        except duckdb.Error as error:
            raise EvidenceError(
                f"cannot be read: {str(error).splitlines()[0]}",
                where=f"{view} of snapshots {self.before.number} and {self.after.number}",
                next_step="take new snapshots; a file was changed or is gone",
            ) from error
        self._made[view] = True
        refine = getattr(self.engine, "refine", None)
        if refine is not None:
            refine(self, view)

    def _scope_table(self) -> None:
        """The verdicts as a table: one row per view and instance of its scope."""
        worst: dict[tuple[str, str | None], Verdict] = {}
        for view, record in self.after.views.items():
            for (scope, value), verdict in self.verdicts.items():
                known = worst.get((view, value), OK)
                here = scope in (record.get("scope"), f"view:{view}")
                if here and WORDS.index(verdict.word) > WORDS.index(known.word):
                    worst[view, value] = verdict
        rows = [(view, value, one.word, one.why) for (view, value), one in worst.items()]
        self.connection.execute("create table scope_verdicts (view varchar, value varchar, word varchar, why varchar)")
        if rows:
            self.connection.executemany("insert into scope_verdicts values (?, ?, ?, ?)", rows)


def _relation(end: Snapshot, view: str) -> str:
    return end.relation(view) or union_columns(end.columns(view))
