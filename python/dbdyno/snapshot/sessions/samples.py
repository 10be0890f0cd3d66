"""What a sampler of sessions has seen: rows of CSV, which the server made, until they are taken."""

from __future__ import annotations

import csv
import io
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from dbdyno.snapshot.engines.view import Column, View

BLOCKED_EVERY_NS = 1_000_000_000
WANTED_MOST = 50
"""So many statements of the sessions have their text asked for, beside those of Top SQL."""

LATER = (
    Column("client", "text", "text", "VARCHAR"),
    Column("statement_us", "gauge", "us", "BIGINT"),
    Column("state_us", "gauge", "us", "BIGINT"),
)
"""Columns of a look that stores of before have not: the client's address (`local`: a socket), since when the
statement runs, since when the state lasts."""

_PAIR = ("at_us", "session", "blocker")


def activity(statement_type: str) -> tuple[Column, ...]:
    """One row per session and look; the type is that of the statement's identifier."""
    texts = ("state", "event_type", "event")
    return (
        Column("at_us", "key", "us", "BIGINT"),
        Column("session", "key", "count", "BIGINT"),
        *(Column(name, "text", "text", "VARCHAR") for name in ("kind", "datname", "usename", "application")),
        Column("statement", "text", "count" if statement_type == "BIGINT" else "text", statement_type),
        *(Column(name, "text", "text", "VARCHAR") for name in texts),
        Column("transaction_us", "gauge", "us", "BIGINT"),
        *LATER,
    )


def blocked(statement_type: str, *more: Column) -> tuple[Column, ...]:
    """One row per look, waiter and blocker; `more` are an engine's own columns, after the lock."""
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
    """Identifiers of the statements that were seen, the most frequent first; those that blocked somebody or
    waited for a lock lead. Their texts are worth asking for."""
    first: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for view in views:
        counts = first if view.name == "blocked" else others
        names = [column.name for column in view.columns]
        places = [names.index(name) for name in ("statement", "blocker_statement") if name in names]
        for row in _rows(view):
            counts.update(str(row[at]) for at in places if at < len(row) and row[at])
    return list(dict.fromkeys([one for counts in (first, others) for one, _ in counts.most_common(WANTED_MOST)]))


def _rows(view: View) -> Iterable[Sequence[Any]]:
    if isinstance(view.rows, bytes):
        return csv.reader(io.StringIO(view.rows.decode(errors="replace"), newline=""))
    return view.rows


class Seen:
    """What the looks of a thread saw; `take` may be called by another one.

    Who blocks whom is asked at most once per second.
    """

    def __init__(self, activity: tuple[Column, ...], blocked: tuple[Column, ...]) -> None:
        self._columns = {"activity": activity, "blocked": blocked}
        self._rows: dict[str, list[str]] = {name: [] for name in self._columns}
        self._lock = threading.Lock()
        self._asked_ns: int | None = None
        self._looks = 0

    def asks_who_blocks(self) -> bool:
        """Whether it is time to ask; then it counts as asked."""
        now = time.monotonic_ns()
        if self._asked_ns is not None and now - self._asked_ns < BLOCKED_EVERY_NS:
            return False
        self._asked_ns = now
        return True

    def add(self, sessions: str | None, blocked: str | None) -> None:
        """Rows of one look, without the end of the last line; None for none."""
        with self._lock:
            for name, text in (("activity", sessions), ("blocked", blocked)):
                self._rows[name] += [text, "\n"] if text else []

    def take(self, looks: int) -> tuple[list[View], int]:
        """The views `activity` and `blocked` since the last call, and how many of all `looks` they are from."""
        with self._lock:
            rows, self._rows = self._rows, {name: [] for name in self._columns}
            since, self._looks = looks - self._looks, looks
        return [View(name, "now", self._columns[name], "".join(rows[name]).encode()) for name in rows], since
