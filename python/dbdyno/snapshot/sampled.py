"""What a sampler of sessions has seen: rows of CSV, which the server made, until they are taken."""

from __future__ import annotations

import threading
import time

from dbdyno.snapshot.view import Column, View

BLOCKED_EVERY_NS = 1_000_000_000


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
    )


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
