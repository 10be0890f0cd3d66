"""The current activity of a server: a frame is made from two quick readings and the looks between them.

A reading costs far less than a snapshot: it contains a few totals and the statements' times, and nothing about tables.
An engine's module `live` takes the readings; `frame` turns two of them into numbers to show.
"""

from __future__ import annotations

import csv
import importlib
import io
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NotRequired, TypedDict

from dbdyno.base.closeable import Closeable
from dbdyno.base.errors import SnapshotError
from dbdyno.evidence.events import wait_class
from dbdyno.snapshot.engines.protocol import Sampler
from dbdyno.snapshot.engines.registry import MODULES, engine_of
from dbdyno.snapshot.engines.view import Options, View
from dbdyno.snapshot.sessions.samples import WHOLE, weight

EVENTS_MOST = 3
"""Largest number of events shown for each wait class."""

OWN_MARK = "/* dbdyno"
"""Mark in each of dbdyno's statements, by which the screen hides them."""

OWN_MOST = 8
"""Number of additional statements whose texts are read, since dbdyno's own statements may be among the first."""


@dataclass(frozen=True)
class Reading:
    """Readings of a server's counters at one instant.

    Attributes:
        at_ns: The instant, by any monotonic clock.
        counters: Values that only grow.
        states: Current states.
        statements: Calls and time in ns by identifier; None if the engine does not measure them.
        own: Number of dbdyno's transactions that `commits` will eventually include. They are reported and not
            subtracted, because an engine may count them up to a second late.
    """

    at_ns: int
    counters: Mapping[str, float | None]
    states: Mapping[str, float | None] = field(default_factory=dict)
    statements: Mapping[str, tuple[float, float]] | None = None
    own: int = 0


class Session(TypedDict):
    """A current session: how long its statement, transaction and state have lasted, and who blocks it.

    `horizon_age` is the age of its vacuum horizon in transactions; only PostgreSQL has it.
    """

    pid: int
    user: str | None
    database: str | None
    application: str | None
    client: str | None
    state: str
    wait: str | None
    statement_us: int | None
    transaction_us: int | None
    state_us: int | None
    blockers: list[int] | None
    query: str
    horizon_age: NotRequired[int | None]


class Progress(TypedDict):
    """A command that reports its progress; `done` is the finished part, from 0 to 1."""

    pid: int
    what: str
    phase: str
    done: float | None
    on: str | None


Active = TypedDict("Active", {"class": str, "aas": float, "share": float, "events": list[str]})
"""Average active sessions of a wait class, with its most frequent events."""


class StatementTime(TypedDict):
    """Time and calls of a statement since the previous reading."""

    statement: str
    aas: float
    calls: float
    mean: float | None
    share: NotRequired[float]
    text: NotRequired[str | None]


class ProfileLine(TypedDict):
    """A line of the load profile."""

    label: str
    value: float | None
    unit: str


class Frame(TypedDict):
    """The numbers of one refresh."""

    title: str
    seconds: float
    profile: list[ProfileLine]
    states: dict[str, float | None]
    classes: list[Active] | None
    looks: int
    statements: list[StatementTime] | None
    notes: list[str]


class Live(Closeable):
    """An engine's side of the live screen with one connection for the readings; a context manager.

    Attributes:
        engine: Name of the engine, by which its waits are classified.
        noun: The word for the connection's target: `server` or `instance`.
        lines: Lines of the load profile: label, counter, unit (per_s or bytes_per_s).
        title: The target, the engine and its version.
        lacks: Sentences on what is not measured, and what would measure it.

    Raises:
        SnapshotError: The server does not answer.
    """

    engine: str
    noun = "server"
    lines: Sequence[tuple[str, str, str]]
    title: str
    lacks: Sequence[str]
    _connection: Any

    @abstractmethod
    def read(self) -> Reading:
        """Take a reading now.

        Raises:
            SnapshotError: The server is gone.
        """

    @abstractmethod
    def sampler(self, period_s: float) -> Sampler:
        """Return a sampler of the sessions with its own connection."""

    def texts(self, statements: Sequence[str]) -> Mapping[str, str]:
        """Return the texts of these statements, without literals; empty if no statements are shown."""
        return {}

    def sessions(self) -> list[Session]:
        """Return the sessions; empty if the engine does not report them."""
        return []

    def progress(self) -> list[Progress]:
        """Return the commands that report their progress; empty if the engine reports none."""
        return []

    @abstractmethod
    def plan(self, pid: int) -> list[str]:
        """Return the plan of the statement that a session runs, without executing anything.

        Raises:
            SnapshotError: The plan is not available.
        """

    @abstractmethod
    def cancel(self, pid: int) -> bool:
        """Return True if the server accepted the request to cancel a session's statement.

        Raises:
            SnapshotError: The request failed.
        """

    def wait_class(self, kind: str | None, event: str | None) -> str:
        """Return the wait class of an event in which a client waits."""
        return wait_class(self.engine, kind, event)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _gone(self, reason: str, where: str) -> SnapshotError:
        return SnapshotError(
            f"the {self.noun} closed the connection: {reason}",
            where=where,
            next_step=f"start the command again when the {self.noun} is up",
        )


def frame(live: Live, before: Reading, now: Reading, looked: tuple[list[View], int], top: int) -> Frame:
    """Return the numbers of one refresh: load profile, active sessions by class, top SQL.

    A value that is not known is None. If counters fell (after a restart, a reset), no rate is known.
    """
    seconds = (now.at_ns - before.at_ns) / 1e9
    fell = [
        name
        for name, value in now.counters.items()
        if value is not None and (old := before.counters.get(name)) is not None and value < old
    ]
    rates = {name: None if fell else _rate(before, now, name, seconds) for name in now.counters}
    hits, reads = rates.get("hits"), rates.get("reads")
    asked = rates["asked"] = None if hits is None or reads is None else hits + reads
    classes, looks = _classes(live.wait_class, looked)
    statements = None if now.statements is None else _statements(before, now, seconds)
    if statements:
        texts = live.texts([row["statement"] for row in statements[: top + OWN_MOST]])
        shown: list[StatementTime] = [{**row, "text": texts.get(row["statement"])} for row in statements]
        statements = [row for row in shown if OWN_MARK not in (row["text"] or "")][:top]
    notes = list(live.lacks)
    if now.own > before.own and seconds > 0:
        ours = (now.own - before.own) / seconds
        notes.append(f"transactions: about {ours:.0f} a second are those of this screen")
    if fell:
        notes.insert(0, "counters restarted: the server was restarted, or they were reset")
    return {
        "title": live.title,
        "seconds": seconds,
        "profile": [
            *[ProfileLine(label=label, value=rates.get(name), unit=unit) for label, name, unit in live.lines],
            {"label": "hit rate", "value": (hits or 0) / asked if asked else None, "unit": "ratio"},
        ],
        "states": dict(now.states),
        "classes": classes,
        "looks": looks,
        "statements": statements,
        "notes": notes,
    }


def _rate(before: Reading, now: Reading, name: str, seconds: float) -> float | None:
    old, new = before.counters.get(name), now.counters.get(name)
    return None if old is None or new is None or seconds <= 0 else (new - old) / seconds


def _classes(
    wait_class: Callable[[str | None, str | None], str], looked: tuple[list[View], int]
) -> tuple[list[Active] | None, int]:
    """Return average active sessions by class, each with its most frequent events, and the number of looks."""
    views, looks = looked
    if not looks:
        return None, 0
    activity = views[0]
    names = [column.name for column in activity.columns]
    at = {name: place for place, name in enumerate(names)}
    seen: dict[str, dict[str, int]] = {}
    rows: Any = activity.rows
    if isinstance(rows, bytes):
        rows = csv.reader(io.StringIO(rows.decode(errors="replace")))
    for row in rows:
        if not row or row[at["state"]] not in ("active", "fastpath function call"):
            continue
        if row[at["kind"]] not in ("client", "client backend", "parallel worker"):
            continue
        kind, event = row[at["event_type"]] or None, row[at["event"]] or None
        events = seen.setdefault(wait_class(kind, event), {})
        times = weight(dict(zip(names, row, strict=False)))
        events[event or "CPU"] = events.get(event or "CPU", 0) + times
    counts = {name: sum(events.values()) for name, events in seen.items()}
    return [
        {
            "class": name,
            "aas": counts[name] / (looks * WHOLE),
            "share": counts[name] / sum(counts.values()),
            "events": sorted(seen[name], key=lambda one: -seen[name][one])[:EVENTS_MOST],
        }
        for name in sorted(counts, key=lambda one: (-counts[one], one))
    ], looks


def _statements(before: Reading, now: Reading, seconds: float) -> list[StatementTime]:
    """Return the statements sorted by time since the previous reading, without those whose counters fell."""
    old = before.statements or {}
    rows: list[StatementTime] = []
    for name, (calls, time_ns) in (now.statements or {}).items():
        calls_before, time_before = old.get(name, (0.0, 0.0))
        if time_ns <= time_before or calls < calls_before:
            continue
        spent, done = time_ns - time_before, calls - calls_before
        rows.append(
            {
                "statement": name,
                "aas": spent / 1e9 / seconds,
                "calls": done / seconds,
                "mean": spent / done if done else None,
            }
        )
    whole = sum(row["aas"] for row in rows)
    rows.sort(key=lambda row: -float(row["aas"]))
    return [{**row, "share": row["aas"] / whole} for row in rows]


def open_live(dsn: str, options: Options) -> Live:
    """Connect, and return the live screen's interface to the engine of a connection string.

    Raises:
        SnapshotError: The server does not answer.
    """
    module: Any = importlib.import_module(f"{MODULES[engine_of(dsn)]}.live")
    live: Live = module.open_live(dsn, options)
    return live
