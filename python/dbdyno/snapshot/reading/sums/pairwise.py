"""Like `batch`, but one sub-interval at a time, for engines whose rules look at two snapshots at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.base.sql_text import literal, quoted
from dbdyno.snapshot.reading.ends import Ends
from dbdyno.snapshot.reading.sums.batch import Batch, counter_columns
from dbdyno.snapshot.store.folder import Snapshot, Store

if TYPE_CHECKING:
    from dbdyno.snapshot.engines.metric import Metric


class Pairwise(Batch):
    """Differences of neighbouring snapshots, each pair with its own DuckDB schema; `make` returns a pair's interval."""

    def __init__(self, chain: Sequence[Snapshot], make: Callable[..., Any]) -> None:
        self._make = make
        super().__init__(chain)

    def _pair(self, first: Snapshot, last: Snapshot, chain: Sequence[Snapshot], peeked: object) -> Ends:
        self.connection.execute(f"create schema {_schema(last.number)}")
        self._enter(last.number)
        pair: Ends = self._make(Store(last.store), first, last, [first, last], connection=self.connection)
        return pair

    def _enter(self, number: int) -> None:
        """Make the schema of this pair the current one, in which tables are created."""
        self.connection.execute(f"set schema = {literal(_schema(number))}")

    def table(self, view: str) -> str:
        """Return the table with the differences of a view, which is created on first use."""
        if view not in self._made:
            self._made[view] = True
            queries = []
            for pair in self.pairs_with(view):
                self._enter(pair.after.number)
                names = [quoted(c.name) for c in counter_columns(pair.after.columns(view))]
                still = " and ".join(f"coalesce({name}, 0) = 0" for name in names)
                number = pair.after.number
                queries.append(
                    f"(select {number}::bigint as part, * from {_schema(number)}.{_table(pair, view)}"
                    f" where not (verdict = 'ok' and life = 'kept' and {still}))"
                )
            self.connection.execute("set schema = 'main'")
            self.connection.execute(f"create table {quoted(view)} as {' union all by name '.join(queries)}")
        return quoted(view)

    def metrics(self) -> Sequence[Sequence[tuple[Metric, float | None]]]:
        """Return the metrics of each pair."""
        found = []
        for pair in self.pairs:
            self._enter(pair.after.number)
            found.append(list(pair.engine.metrics(pair)))
        self.connection.execute("set schema = 'main'")
        return found


def _schema(number: int) -> str:
    return f"part_{number}"


def _table(pair: Any, view: str) -> str:
    """Return the table of a view's differences for a pair, which is itself an interval."""
    return str(pair.table(view))
