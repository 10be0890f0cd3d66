"""Content of one view of an engine at one instant: columns with a meaning, and rows.

The difference of two snapshots does not depend on the engine. It uses only the kind of each column, so a collector
states once, and in one place, what may be subtracted and what may not.

    kind      meaning
    key       part of the row's identity; never a name that can change (an oid or a digest instead)
    counter   only grows within one life; subtracted
    sum       a counter added up over parts that may vanish (a table's indexes): subtracted too, but
              a fall only means that a part vanished, and makes this one number unknown
    gauge     a state at the instant
    text      a name, a setting
    time      an instant, microseconds since 1970; within one life it neither goes back nor becomes NULL
    since     the start of the row's life: a different value means another life
    low, high a lifetime's minimum and maximum: a rising minimum or a falling maximum is another life
              (0 and NULL are ignored: many engines write 0 for "none yet")
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WORDS = ("ok", "partial", "clock stepped", "evicted", "reset", "restart", "crash", "failover")
"""The words of a verdict, from the mildest to the gravest."""
LOSSES = ("reset", "crash", "failover", "restart", "partial")
"""Words of the verdicts that mean that the counts between the two snapshots are not known."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a view.

    Attributes:
        name: Its name.
        kind: Its kind, as in the table above.
        unit: count, ms, us, ns, ps, s, bytes, kb, blocks, ratio or text.
        type: DuckDB's type.
    """

    name: str
    kind: str
    unit: str
    type: str


@dataclass(frozen=True, slots=True)
class View:
    """The content that was read from one view.

    Attributes:
        name: Name of the view.
        scope: The epoch by which its rows are judged.
        columns: Its columns.
        rows: Tuples in the order of the columns, or CSV without a header in which NULL is empty and unquoted.
        scope_by: A column that says which instance of the scope a row belongs to (such as a database's oid).
        appearance: What a row means that only the later snapshot has. `object`: it was created in between, and its
            counters began at zero. `entry` (of a bounded table): the same, unless entries were evicted; if the table
            was reset, what its rows hold was counted since then. `fixed`: the row always exists, so nothing is known.
        elapsed_ns: How long reading took.
        problem: Why the view was not read, or None.
        next_step: What would make it readable.
        order_by: Columns by which rows of CSV are sorted when they are stored, so that they take less space.
    """

    name: str
    scope: str
    columns: tuple[Column, ...]
    rows: list[tuple[Any, ...]] | bytes
    scope_by: str | None = None
    appearance: str = "object"
    elapsed_ns: int = 0
    problem: str | None = None
    next_step: str | None = None
    order_by: tuple[str, ...] = ()


def unread_view(name: str, scope: str, problem: str, next_step: str | None = None) -> View:
    """Return a view that could not be read, with the reason."""
    return View(name, scope, (), [], problem=problem, next_step=next_step)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How reliable a difference is.

    Attributes:
        word: One of `WORDS`.
        why: The reason.
        at_us: When it happened, in microseconds since 1970, if known.
    """

    word: str = "ok"
    why: str = ""
    at_us: int | None = None


OK = Verdict()


@dataclass(frozen=True, slots=True)
class Options:
    """Options for collecting; the timeouts are short, so that collecting never blocks others for long.

    Attributes:
        databases: None for the connection string's database, `("*",)` for all that allow connections.
        redact: Do not store texts of statements.
        statement_timeout_ms: Timeout of a statement.
        lock_timeout_ms: Timeout of a wait for a lock.
        name: Name of the target in the store; None for its host and port.
        texts_most: Largest number of new statement texts per snapshot.
        plans: Number of statements whose generic plan is stored.
    """

    databases: tuple[str, ...] | None = None
    redact: bool = False
    statement_timeout_ms: int = 5000
    lock_timeout_ms: int = 500
    name: str | None = None
    texts_most: int = 200
    plans: int = 0
