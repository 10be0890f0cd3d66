"""Rows bound to prepared INSERT statements: one for a partition's static columns, one for each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dbdyno.wide.catalog import CLUSTERING, PARTITION, REGULAR, STATIC, WideTable
from dbdyno.wide.pushdown import quote_cql
from dbdyno.wide.write import bound_value

PARENT, CHILD = 0, 1


class PreparedInserts:
    """Prepared statements of a load; all carry the job's timestamp, and NULL values are left unset."""

    def __init__(self, session: Any, table: WideTable, names: Sequence[str], timestamp_us: int) -> None:
        self._timestamp = timestamp_us
        given = set(names)
        self._key = [one for one in table.columns_with_roles(PARTITION) if one.name in given]
        static = [one for one in table.columns_with_roles(STATIC) if one.name in given]
        row = [one for one in table.columns_with_roles(CLUSTERING, REGULAR) if one.name in given]
        self._cluster = [one.name for one in table.columns_with_roles(CLUSTERING)]
        self._columns = {CHILD: [*self._key, *row]}
        if static:
            self._columns[PARENT] = [*self._key, *static]
        self.cql = {which: self._insert(table, columns) for which, columns in self._columns.items()}
        self._prepared = {which: session.prepare(cql) for which, cql in self.cql.items()}
        for one in self._prepared.values():
            one.is_idempotent = True

    @staticmethod
    def _insert(table: WideTable, columns: Sequence[Any]) -> str:
        names, marks = ", ".join(quote_cql(one.name) for one in columns), ", ".join("?" for _ in columns)
        return f"insert into {quote_cql(table.name)} ({names}) values ({marks}) using timestamp ?"  # noqa: S608

    def key(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the partition key of a row."""
        return tuple(row[one.name] for one in self._key)

    def bound_statements(self, group: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Any]]:
        """Yield the bound statements for the rows of one partition as pairs of kind and statement.

        The kind is PARENT for the partition's static columns and CHILD for a row.
        """
        if PARENT in self._prepared:
            yield PARENT, self._bind(PARENT, group[0])
        for row in group:
            if not self._cluster or row[self._cluster[0]] is not None:
                yield CHILD, self._bind(CHILD, row)

    def _bind(self, which: int, row: Mapping[str, Any]) -> Any:
        from cassandra.query import UNSET_VALUE

        values = [bound_value(one.kind, row[one.name]) for one in self._columns[which]]
        return self._prepared[which].bind([*(UNSET_VALUE if one is None else one for one in values), self._timestamp])
