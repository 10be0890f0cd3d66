"""The result of one SELECT on a connection that can read only the evidence for which it was opened."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dbdyno.base.closeable import Closeable
from dbdyno.base.errors import EvidenceError
from dbdyno.evidence.query_limits import require_select

if TYPE_CHECKING:
    import duckdb

FETCH = 4096
"""Number of rows fetched at a time."""


class RestrictedAnswer(Closeable):
    """Result of a SELECT: column names, rows fetched on demand, and the parts left out (`broken`).

    A context manager: leaving it closes the connection. `EvidenceError` is raised if the text is not a single SELECT,
    the query fails, or it takes longer than `seconds`.

    Args:
        connection: A connection restricted by `query_limits.restrict`; it is closed with the answer.
        text: The query.
        where: Name of what is queried, for error messages.
        next_step: Sentence for error messages that lists the tables.
        seconds: The longest time that the query may take [s]; None for no limit.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, text: str, where: str, next_step: str, seconds: float | None = None
    ) -> None:
        self._connection = connection
        self._where, self._next_step = where, next_step
        self.broken: list[str] = []
        self._timer = threading.Timer(seconds, connection.interrupt) if seconds is not None else None
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        try:
            with self._in_words():
                self._cursor = connection.execute(require_select(connection, text))
        except BaseException:
            self.close()
            raise
        self.names = _each_once([column[0] for column in self._cursor.description or []])

    def rows(self, limit: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Yield the rows, at most `limit` of them if given; only a few thousand are in memory at a time."""
        left = sys.maxsize if limit is None else limit
        while left > 0:
            with self._in_words():
                found = self._cursor.fetchmany(min(FETCH, left))
            if not found:
                return
            yield from found
            left -= len(found)

    def batches(self) -> Any:
        """Return the rows as a typed `pyarrow.RecordBatchReader`; call it instead of `rows`. It needs pyarrow."""
        import warnings

        with self._in_words(), warnings.catch_warnings():
            # The warning is about a copy, which is only one batch and saves a second run of the query.
            warnings.simplefilter("ignore", UserWarning)
            return self._cursor.to_arrow_reader(FETCH)

    @contextlib.contextmanager
    def _in_words(self) -> Iterator[None]:
        import duckdb

        try:
            yield
        except duckdb.Error as error:
            raise EvidenceError(str(error), where=self._where, next_step=self._next_step) from error

    def close(self) -> None:
        """Close the connection."""
        if self._timer is not None:
            self._timer.cancel()
        self._connection.close()


def _each_once(names: list[str]) -> list[str]:
    """Return column names with duplicates made unique: `a`, `a_2`."""
    found: list[str] = []
    for name in names:
        number, each = 2, name
        while each in found:
            number, each = number + 1, f"{name}_{number}"
        found.append(each)
    return found
