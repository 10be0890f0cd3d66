"""Rows that the table refuses, found by bisection, each recorded with its reason and position.

A statement that fails for one of many rows is tried again on each half, in its own savepoint, until only a single row
remains. If several rows have the same key, the first one in the file is accepted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.errors import MoveError
from dbdyno.base.files import write_atomically
from dbdyno.base.json_types import TableRow
from dbdyno.move.nouns import with_noun

PIECES = 64
"""Number of ranges tried one by one, so that a bad row costs a retry of one range and not of the whole table."""
TID_RANGES_SINCE = 140000
ROW_ERRORS = ("22", "23", "44")
"""Classes of SQLSTATE that a single row can cause: data, integrity, WITH CHECK OPTION; also the single code P0001."""

StatementBuilder = Callable[[sql.Composable], sql.Composed]


@dataclass
class Rejects:
    """Rejected rows, up to a limit."""

    path: Path
    most: int
    files: Sequence[Path]
    rows: list[TableRow] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)
    """File number and row number of each rejected row."""
    earlier: Sequence[TableRow] = ()
    """Rejected rows of other tables in the same transaction; they go into the same file and count towards the limit."""
    written: bool = False

    def add(self, file: int, row: int, reason: str, code: str | None, values: Any) -> None:
        """Add a rejected row.

        Raises:
            MoveError: The limit is exceeded.
        """
        # Files in different folders may have the same name.
        above = Path(os.path.commonpath([path.parent for path in self.files]))
        name = str(self.files[file].relative_to(above))
        self.places.append((file, row))
        self.rows.append({"file": name, "row": row, "reason": reason, "code": code, "values": values})
        if len(self.earlier) + len(self.rows) > self.most:
            some = [*self.earlier, *self.rows][:3]
            first = "; ".join(f"{one['file']} row {one['row']}: {one['reason']}" for one in some)
            raise MoveError(
                f"more than {with_noun(self.most, 'row')} cannot be loaded; the table was not changed: {first}",
                where="--max-rejects",
                next_step="repair the data or the table, or allow more rejected rows with --max-rejects",
            )

    def write(self) -> None:
        """Write one line of JSON per row and sync it to disk.

        Raises:
            MoveError: The file cannot be written.
        """
        text = "".join(f"{json.dumps(row, ensure_ascii=False, default=str)}\n" for row in (*self.earlier, *self.rows))
        try:
            write_atomically(self.path, text.encode(), durable=True, mode=0o600)
            self.written = True
        except OSError as error:
            raise MoveError(
                f"cannot be written: {error.strerror}; the table was not changed",
                where=str(self.path),
                next_step="free disk space or check the permissions",
            ) from None

    def remove_file(self, conn: psycopg.Connection[Any]) -> None:
        """Remove the written file after a failed load, unless the connection is lost: the commit may have succeeded."""
        if self.written and not conn.closed:
            self.path.unlink(missing_ok=True)


@dataclass
class BisectingRunner:
    """Runner that executes a statement range by range, bisects ranges that fail, and rejects single rows that fail."""

    conn: psycopg.Connection[Any]
    rejects: Rejects

    def __call__(self, table: sql.Composable, make: StatementBuilder) -> int:
        """Run the statement over all rows and return the number of affected rows.

        Args:
            table: The table that holds the rows and their positions, with alias `s` in the statement.
            make: Builds the statement for a condition on `s`.
        """
        row = self.conn.execute(
            "select pg_relation_size(%s::regclass) / current_setting('block_size')::int", [table.as_string(self.conn)]
        ).fetchone()
        blocks = row[0] if row else 0
        step = max(blocks // PIECES, 1) if self.conn.info.server_version >= TID_RANGES_SINCE else max(blocks, 1)
        return sum(self._blocks(table, make, low, min(low + step, blocks)) for low in range(0, blocks, step))

    def _blocks(self, table: sql.Composable, make: StatementBuilder, low: int, high: int) -> int:
        rows = sql.SQL("s.ctid >= {}::tid and s.ctid < {}::tid").format(f"({low},0)", f"({high},0)")
        try:
            return self._try(make(rows))
        except psycopg.Error as error:
            _raise_unless_of_a_row(error)
        if high - low > 1:
            middle = (low + high) // 2
            return self._blocks(table, make, low, middle) + self._blocks(table, make, middle, high)
        text = sql.SQL("select s.ctid::text, s.dbdyno_file, s.dbdyno_row from {} s where {} order by s.ctid")
        return self._rows(table, make, self.conn.execute(text.format(table, rows)).fetchall())

    def _rows(self, table: sql.Composable, make: StatementBuilder, rows: Sequence[tuple[str, int, int]]) -> int:
        if not rows:
            return 0
        places = sql.SQL("s.ctid = any({}::tid[])").format([one[0] for one in rows])
        try:
            return self._try(make(places))
        except psycopg.Error as error:
            _raise_unless_of_a_row(error)
            if len(rows) == 1:
                self._reject(table, rows[0], error)
                return 0
        middle = len(rows) // 2
        return self._rows(table, make, rows[:middle]) + self._rows(table, make, rows[middle:])

    def _try(self, statement: sql.Composed) -> int:
        with self.conn.transaction():
            return self.conn.execute(statement).rowcount

    def _reject(self, table: sql.Composable, row: tuple[str, int, int], error: psycopg.Error) -> None:
        text = sql.SQL("select to_jsonb(s.*) - array['dbdyno_file', 'dbdyno_row'] from {} s where s.ctid = {}::tid")
        found = self.conn.execute(text.format(table, row[0])).fetchone()
        reason = error.diag.message_primary or str(error).strip().splitlines()[0]
        self.rejects.add(row[1], row[2], reason, error.sqlstate, found[0] if found else None)


def delete_rejected(conn: psycopg.Connection[Any], stage: sql.Composable, rejects: Rejects, since: int) -> None:
    """Delete the rejected rows from the staging table, so that they do not fail again."""
    rows = rejects.places[since:]
    if not rows:
        return
    text = sql.SQL(
        "delete from {} s using unnest(%s::int[], %s::bigint[]) r(f, n)"
        " where s.dbdyno_file = r.f and s.dbdyno_row = r.n"
    )
    conn.execute(text.format(stage), [[one[0] for one in rows], [one[1] for one in rows]])


def is_row_error(error: psycopg.Error) -> bool:
    """Return True if a single row can cause the error."""
    state = error.sqlstate or ""
    return state[:2] in ROW_ERRORS or state == "P0001"


def _raise_unless_of_a_row(error: psycopg.Error) -> None:
    if not is_row_error(error):
        raise error
