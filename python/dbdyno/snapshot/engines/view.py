"""What one view of an engine held at one instant: columns with a meaning, and rows.

The difference of two snapshots knows nothing of engines. All it goes by is the kind of each column,
so that a collector says once, and in one place, what may be subtracted and what may not.

    kind      meaning
    key       part of the row's identity; never a name that can change (an oid, a digest)
    counter   only grows within one life; subtracted
    sum       a counter added up over parts that may vanish (a table's indexes): subtracted too, but
              a fall says only that a part went, and leaves this one number unknown
    gauge     a state at the instant
    text      a name, a setting
    time      an instant, microseconds since 1970; within one life never back, never gone
    since     the start of the row's life: another value is another life
    low, high a lifetime's least and most: a rising least, a falling most are another life
              (0 and NULL are passed over: many engines write 0 for "none yet")
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

KINDS = ("key", "counter", "sum", "gauge", "text", "time", "since", "low", "high")
APPEARANCES = ("object", "entry", "fixed")

WORDS = ("ok", "partial", "clock stepped", "evicted", "reset", "restart", "crash", "failover")
"""The words of a verdict, from the mildest to the gravest."""
LOSSES = ("reset", "crash", "failover", "restart", "partial")
"""Those for which what was counted in between is not known."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `kind` as above; `unit` is count, ms, us, ns, ps, s, bytes, kb, blocks, ratio or
    text; `type` is DuckDB's type."""

    name: str
    kind: str
    unit: str
    type: str


@dataclass(frozen=True, slots=True)
class View:
    """What was read of one view.

    `scope` names the epoch that judges its rows; `scope_by` a column that tells which instance of
    the scope (a database's oid). `appearance` says what a row means that only the later snapshot
    has: of an `object`, that it was created between (its counters began at zero); of an `entry` of
    a bounded table the same, unless entries were evicted, and of one that was reset, that what its rows hold was
    counted since then; a `fixed` row is always there, so that nothing is known. `rows` are tuples in the order
    of the columns, or CSV without a header in which NULL is empty and unquoted. With a `problem` the view was not
    read: `next_step` says what would make it readable.
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


def unread(name: str, scope: str, problem: str, next_step: str | None = None) -> View:
    """A view that could not be read, and why."""
    return View(name, scope, (), [], problem=problem, next_step=next_step)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a difference is worth: one of `WORDS`, why, and when it happened where that is known
    (microseconds since 1970)."""

    word: str = "ok"
    why: str = ""
    at_us: int | None = None


OK = Verdict()


@dataclass(frozen=True, slots=True)
class Options:
    """How to collect. `databases`: None for the connection string's own, `("*",)` for all that
    allow connections. `name`: of the target in the store; None for its host and port. Times out
    soon, so that collecting never stands in anybody's way. `plans`: of so many statements the generic plan is kept."""

    databases: tuple[str, ...] | None = None
    redact: bool = False
    statement_timeout_ms: int = 5000
    lock_timeout_ms: int = 500
    name: str | None = None
    texts_most: int = 200
    plans: int = 0
