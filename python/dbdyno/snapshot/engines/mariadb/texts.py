"""Texts of statements, read only for digests that may be in a report.

The server's digest texts are already without literals. A digest is the same on every server of a version, so it also
serves as the fingerprint.
"""

from __future__ import annotations

import heapq
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.evidence.memory import file_connection
from dbdyno.snapshot.engines.mariadb.running_statements import OWN_PREFIX
from dbdyno.snapshot.engines.mariadb.views import OTHER_DIGEST, STATEMENTS
from dbdyno.snapshot.engines.view import Column, View

if TYPE_CHECKING:
    from dbdyno.snapshot.store.folder import Snapshot

NAME = "statement_texts"
OWN_STATEMENT = re.compile(r"`performance_schema` \. `threads` SET `instrumented`")
"""Pattern of a statement that a collector sends before its session is excluded from accounting."""
OWN_TEXTS_MOST = 2_000
"""Largest number of stored texts without a known digest; above it, only texts seen in the last samples are kept."""
TEXTS_PER_ORDER = 25
"""Number of top statements per sort order whose texts are read."""

ORDERS = (
    "SUM_TIMER_WAIT",
    "COUNT_STAR",
    "SUM_ROWS_EXAMINED",
    "SUM_ROWS_SENT",
    "SUM_ROWS_AFFECTED",
    "SUM_LOCK_TIME",
    "SUM_ERRORS",
    "SUM_CREATED_TMP_DISK_TABLES",
)
"""Columns by which a report sorts statements."""

COLUMNS = (
    Column("DIGEST", "key", "text", "VARCHAR"),
    Column("fingerprint", "text", "text", "VARCHAR"),
    Column("query", "text", "text", "VARCHAR"),
)

Rows = Callable[[str, Any], list[tuple[Any, ...]]]


def view(
    rows: Rows,
    statements: View | None,
    before: Snapshot | None,
    limit: int,
    seen: Sequence[str] = (),
    ours: Mapping[str, str] | None = None,
) -> View:
    """Return the view of all texts known so far.

    It has the texts of the previous snapshot, of new digests that are among the top in a sort order, and of statements
    that were `seen` in sampled sessions. `ours` are dbdyno's texts of sampled statements whose digest is not known. At
    most `limit` new texts are read.
    """
    known = {str(digest): str(text) for digest, text in _kept(before, NAME, "DIGEST, query")}
    if sum(one.startswith(OWN_PREFIX) for one in known) > OWN_TEXTS_MOST:
        known = {one: text for one, text in known.items() if not one.startswith(OWN_PREFIX)}
    known |= {one: ours[one] for one in seen if ours and one in ours}
    first = top_statements(statements, before) if statements is not None else []
    wanted = [one for one in dict.fromkeys([*seen, *first]) if one not in known and not one.startswith(OWN_PREFIX)][
        :limit
    ]
    started = time.perf_counter_ns()
    if wanted and statements is not None:
        marks = ", ".join(["%s"] * len(wanted))
        table = f"performance_schema.{STATEMENTS.name}"
        sql = f"select digest, min(digest_text) from {table} where digest in ({marks}) group by 1"
        known |= {str(digest): str(text).strip() for digest, text in rows(sql, wanted)}
    spent = time.perf_counter_ns() - started if wanted else 0
    kept = [(one, one, known[one]) for one in sorted(known)]
    return View(NAME, "now", COLUMNS, kept, elapsed_ns=spent)


def top_statements(statements: View, before: Snapshot | None) -> list[str]:
    """Return the digests in any Top SQL list, sorted by increase since the previous snapshot or by total."""
    names = [column.name for column in statements.columns]
    shown = [name for name in ORDERS if name in names]
    at = names.index("DIGEST")
    places = [names.index(name) for name in shown]
    old: dict[str, list[int]] = {}
    if before and set(shown) <= {column.name for column in before.columns(STATEMENTS.name)}:
        for digest, *values in _kept(before, STATEMENTS.name, ", ".join(["DIGEST", *shown])):
            _add(old.setdefault(digest, [0] * len(shown)), values)
    sums: dict[str, list[int]] = {}
    for row in statements.rows:
        assert isinstance(row, tuple)
        if row[at] != OTHER_DIGEST:
            _add(sums.setdefault(row[at], [0] * len(shown)), [row[place] for place in places])
    for digest, earlier in old.items():
        if digest in sums:
            pairs = zip(sums[digest], earlier, strict=True)
            sums[digest] = [new - one if new >= one else new for new, one in pairs]
    found: dict[str, None] = {}
    for index in range(len(shown)):
        most = heapq.nlargest(TEXTS_PER_ORDER, ((values[index], one) for one, values in sums.items()))
        found |= {one: None for value, one in most if value > 0}
    return list(found)


def _add(sums: list[int], values: list[Any]) -> None:
    for index, value in enumerate(values):
        sums[index] += value or 0


def _kept(before: Snapshot | None, view_name: str, columns: str) -> list[tuple[Any, ...]]:
    rows_of = before.relation(view_name) if before is not None and before.problem(view_name) is None else None
    if rows_of is None:
        return []

    with file_connection() as connection:
        return connection.execute(f"select {columns} from {rows_of}").fetchall()
