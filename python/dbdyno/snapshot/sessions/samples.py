"""Buffer for the looks of a session sampler: rows of CSV as the server made them, until `take` is called."""

from __future__ import annotations

import csv
import io
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.snapshot.engines.view import Column, View

MEMORY, QUERIES = "memory", "queries"


@dataclass(frozen=True)
class Source:
    """How sessions are sampled: by `memory` or by `queries`, and the reason if the memory could not be read."""

    by: str
    why: str | None = None

    def sentence(self) -> str:
        """Return how sessions are sampled, in words."""
        if self.by == MEMORY:
            return "sessions are read from the server's memory, up to 1,000 times per second"
        return "sessions are sampled by queries" + (f": {self.why}" if self.why else "")


BLOCKED_EVERY_NS = 1_000_000_000
WANTED_MOST = 50
"""Maximum number of sampled statements whose text is requested in addition to Top SQL."""

LATER_COLUMNS = (
    Column("client", "text", "text", "VARCHAR"),
    Column("statement_us", "gauge", "us", "BIGINT"),
    Column("state_us", "gauge", "us", "BIGINT"),
)
"""Columns of a look that are missing in older stores.

They are the client's address (`local` for a socket), how long the statement has been running, and how long the state
has lasted.
"""

SUMMED_COLUMNS = (
    Column("horizon_age", "gauge", "count", "BIGINT"),
    Column("looks", "gauge", "count", "BIGINT"),
    Column("of_looks", "gauge", "count", "BIGINT"),
)
"""Columns that only PostgreSQL's samples have, and that are missing in older stores.

`horizon_age` is the age of a session's vacuum horizon (its xmin, or its own transaction if that is older), in
transactions. A row that stands for many looks has their number (`of_looks`), and how many of them found the session in
this state (`looks`). Both are NULL in a row that stands for one look.
"""

WHOLE = 1_000_000
"""Weight of a row that stands for one look, or for a period all of whose looks found the same."""
SEEN = f"coalesce((looks * {WHOLE} + of_looks // 2) // of_looks, {WHOLE})"
"""SQL for the weight of a row, in millionths: sums of whole numbers do not depend on their order."""

ALIKE = ("statement", "event", "state", "session", "at_us")
"""Order in which neighbouring rows are most alike: stored in it, sums take a fifth less space."""

_PAIR = ("at_us", "session", "blocker")


def activity_columns(statement_type: str, *, summed: bool = True) -> tuple[Column, ...]:
    """Return the columns of sampled sessions, with a row per look or period, session and state.

    `statement_type` is the SQL type of a statement's identifier. If `summed` is False, each row stands for one look.
    """
    texts = ("state", "event_type", "event")
    return (
        Column("at_us", "key", "us", "BIGINT"),
        Column("session", "key", "count", "BIGINT"),
        *(Column(name, "text", "text", "VARCHAR") for name in ("kind", "datname", "usename", "application")),
        Column("statement", "text", "count" if statement_type == "BIGINT" else "text", statement_type),
        *(Column(name, "text", "text", "VARCHAR") for name in texts),
        Column("transaction_us", "gauge", "us", "BIGINT"),
        *LATER_COLUMNS,
        *(SUMMED_COLUMNS if summed else ()),
    )


def weight(row: Mapping[str, Any]) -> int:
    """Return the weight of a row, as `SEEN` does in SQL; the values are numbers or text, or empty for NULL."""
    looks, of_looks = row.get("looks"), row.get("of_looks")
    if not looks or not of_looks:
        return WHOLE
    return (int(looks) * WHOLE + int(of_looks) // 2) // int(of_looks)


def blocked_columns(statement_type: str, *more: Column) -> tuple[Column, ...]:
    """Return the columns of blocked sessions, a row per look, waiter and blocker; `more` adds an engine's columns."""
    known = Column("statement", "text", "count" if statement_type == "BIGINT" else "text", statement_type)
    return (
        *(Column(name, "key", "us" if name == "at_us" else "count", "BIGINT") for name in _PAIR),
        *(Column(name, "text", "text", "VARCHAR") for name in ("locktype", "mode")),
        *more,
        *(Column(name, "text", "text", "VARCHAR") for name in ("usename", "blocker_state", "blocker_usename")),
        Column("blocker_transaction_us", "gauge", "us", "BIGINT"),
        known,
        Column("blocker_statement", "text", known.unit, known.type),
        *(Column(name, "text", "text", "VARCHAR") for name in ("application", "client")),
        *(Column(name, "text", "text", "VARCHAR") for name in ("blocker_application", "blocker_client")),
        Column("blocker_state_us", "gauge", "us", "BIGINT"),
    )


def statements_of(views: Iterable[View]) -> list[str]:
    """Return identifiers of the statements seen, the most frequent first, for which texts should be read.

    Statements that blocked somebody or waited for a lock come before the others.
    """
    first: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for view in views:
        counts = first if view.name == "blocked" else others
        names = [column.name for column in view.columns]
        places = [names.index(name) for name in ("statement", "blocker_statement") if name in names]
        for row in _rows(view):
            times = weight(dict(zip(names, row, strict=False)))
            for at in places:
                if at < len(row) and row[at]:
                    counts[str(row[at])] += times
    return list(dict.fromkeys([one for counts in (first, others) for one, _ in counts.most_common(WANTED_MOST)]))


def _rows(view: View) -> Iterable[Sequence[Any]]:
    if isinstance(view.rows, bytes):
        return csv.reader(io.StringIO(view.rows.decode(errors="replace"), newline=""))
    return view.rows


class SampleBuffer:
    """Buffer of one thread's looks; `take` may be called by another thread.

    Who blocks whom is queried at most once per second.
    """

    def __init__(self, activity: tuple[Column, ...], blocked: tuple[Column, ...]) -> None:
        self._columns = {"activity": activity, "blocked": blocked}
        self._rows: dict[str, list[str]] = {name: [] for name in self._columns}
        self._lock = threading.Lock()
        self._asked_ns: int | None = None
        self._looks = 0

    def is_blocking_query_due(self) -> bool:
        """Return True if it is time to query who blocks whom; the time is then recorded as that of the last query."""
        now = time.monotonic_ns()
        if self._asked_ns is not None and now - self._asked_ns < BLOCKED_EVERY_NS:
            return False
        self._asked_ns = now
        return True

    def add(self, sessions: str | None, blocked: str | None) -> None:
        """Add the rows of one look as CSV without the last line's end; None for no rows."""
        with self._lock:
            for name, text in (("activity", sessions), ("blocked", blocked)):
                self._rows[name] += [text, "\n"] if text else []

    def take(self, looks: int) -> tuple[list[View], int]:
        """Return the views `activity` and `blocked` since the last call, and the number of looks since then.

        `looks` is the number of all looks so far.
        """
        with self._lock:
            rows, self._rows = self._rows, {name: [] for name in self._columns}
            since, self._looks = looks - self._looks, looks
        order = {"activity": ALIKE}
        return [
            View(name, "now", self._columns[name], "".join(rows[name]).encode(), order_by=order.get(name, ()))
            for name in rows
        ], since
