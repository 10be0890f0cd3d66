"""Rows that a MariaDB table refuses, found by bisection and written to the reject file with reason and position.

InnoDB rolls back a failed statement by itself and the transaction continues, so no savepoint is needed. Staged rows
carry the number of their file and their row number in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.bench.mariadb.address import driver
from dbdyno.bench.mariadb.session import rows
from dbdyno.move.engines.postgres.staging import FILE, ROW
from dbdyno.move.loading.rejects import Rejects

PIECE_ROWS = 50_000
"""Number of rows tried at once, so that a bad row costs a retry of one such range and not of the whole table."""
ROW_ERRORS = frozenset(
    (
        1048,  # a NULL that must not be
        1062,  # a key that is there
        1169,
        1264,  # out of range
        1265,  # cut
        1292,  # no such date, or number
        1366,  # no such value
        1367,
        1406,  # too long
        1411,
        1416,  # no geometry
        1442,
        1452,  # a foreign key without its row
        1526,  # in no partition
        1586,
        1644,  # raised by a trigger
        3819,
        4025,  # a check
        4079,
    )
)
"""Error codes that a single row can cause."""

StatementBuilder = Callable[[str], str]
StatementRunner = Callable[[str, StatementBuilder], int]
"""Function that runs a statement over the rows of a staging table (alias `s`) and returns the number of changed rows.

The second argument builds the statement for a condition that selects rows.
"""


def plain_runner(conn: Any) -> StatementRunner:
    """Return a runner that executes the statement once for all rows."""
    return lambda stage, make: execute(conn, make("true"))


def execute(conn: Any, text: str) -> int:
    """Execute a statement and return the number of rows that it changed."""
    with conn.cursor() as cursor:
        return int(cursor.execute(text))


@dataclass
class BisectingRunner:
    """Runner that executes a statement range by range, bisects ranges that fail, and rejects single rows that fail."""

    conn: Any
    rejects: Rejects

    def __call__(self, stage: str, make: StatementBuilder) -> int:
        """Run the statement over all rows of the staging table and return the number of changed rows."""
        bounds = rows(self.conn, f"select {FILE}, max({ROW}) from {stage} group by {FILE} order by {FILE}")
        return sum(
            self._range(stage, make, int(file), low, min(low + PIECE_ROWS, int(last) + 1))
            for file, last in bounds
            for low in range(1, int(last) + 1, PIECE_ROWS)
        )

    def _range(self, stage: str, make: StatementBuilder, file: int, low: int, high: int) -> int:
        """Run the statement for the rows of a file from `low` (included) to `high` (excluded)."""
        where = f"s.{FILE} = {file} and s.{ROW} >= {low} and s.{ROW} < {high}"
        try:
            return execute(self.conn, make(where))
        except driver().Error as error:
            code, reason = (*error.args, 0, "")[:2]
            if code not in ROW_ERRORS:
                raise
        if high - low > 1:
            middle = (low + high) // 2
            return self._range(stage, make, file, low, middle) + self._range(stage, make, file, middle, high)
        self.rejects.add(file, low, str(reason), str(code), self._values(stage, where))
        rows(self.conn, f"delete s from {stage} s where {where}")
        return 0

    def _values(self, stage: str, where: str) -> TableRow | None:
        with self.conn.cursor() as cursor:
            cursor.execute(f"select s.* from {stage} s where {where}")
            row = cursor.fetchone()
            names = [one[0] for one in cursor.description]
        if row is None:
            return None
        return {name: _printable(value) for name, value in zip(names, row, strict=True) if name not in (FILE, ROW)}


def _printable(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    return value if isinstance(value, (int, float, str, type(None))) else json.loads(json.dumps(value, default=str))
