"""Types of a page about statements."""

from __future__ import annotations

from typing import Literal, TypedDict

from dbdyno.trace.plans import Plan
from dbdyno.trace.source import Row
from dbdyno.trace.tree import Tree

Figure = Literal[
    "calls",
    "elapsed_ns",
    "cpu_ns",
    "wait_ns",
    "physical_reads",
    "consistent_reads",
    "current_reads",
    "rows",
    "misses",
    "inclusive_ns",
]


class Figures(TypedDict):
    """Exclusive figures of calls; `inclusive_ns` includes the calls that they made."""

    calls: int
    elapsed_ns: int
    cpu_ns: int
    wait_ns: int
    physical_reads: int
    consistent_reads: int
    current_reads: int
    rows: int
    misses: int
    inclusive_ns: int


class Step(Figures):
    """A line of the call table."""

    step: str


class Total(Figures):
    """Total of the call table, excluding CLOSE as tkprof does; the figures of CLOSE are given separately."""

    close_calls: int
    close_elapsed_ns: int
    executions: int


class LeftOut(Figures):
    """Sums over the statements that are not shown."""

    statements: int


Wait = TypedDict(
    "Wait",
    {
        "event": str,
        "class": str,
        "inside": bool,
        "count": int,
        "total_ns": int,
        "p50_ns": int,
        "p99_ns": int,
        "max_ns": int,
    },
)
"""Number and time of the waits for one event, inside the calls of a statement or between them."""


class Relative(TypedDict):
    """A statement that called this one, or that this one called."""

    statement: str
    text: str | None
    calls: int
    elapsed_ns: int


class Entry(TypedDict, total=False):
    """A statement; fields from `waits` on exist only for statements shown, those from `binds` on only in the report."""

    statement: str
    steps: list[Step]
    total: Total
    share: float
    sqlid: str | None
    text: str | None
    command: int | None
    user_id: int | None
    depth: int
    recursive: bool
    variants: list[str]
    place: str
    waits: list[Wait]
    plans: list[Plan]
    parents: list[Relative]
    children: list[Relative]
    binds: list[Binds]
    longest: list[Longest]
    tree: Tree | None


class Binds(TypedDict):
    """The bind values of an execution."""

    call: int
    elapsed_ns: int
    file: str
    line: int
    numbers: list[int]
    values: list[str | None]


Longest = TypedDict(
    "Longest",
    {
        "elapsed_ns": int,
        "started_ns": int,
        "event": str,
        "class": str,
        "session": int,
        "statement": str,
        "text": str | None,
        "p1": int | None,
        "p2": int | None,
        "p3": int | None,
        "parameters": object,
        "object_id": int | None,
        "inside": str | None,
        "file": str,
        "line": int,
    },
)
"""A long wait with its place in the file."""


class Totals(TypedDict):
    """The call table of several statements."""

    statements: int
    steps: list[Step]
    total: Figures


class StatementOptions(TypedDict):
    """Options with which the page was requested."""

    sort: str
    merge_literals: bool


class StatementsPage(TypedDict):
    """The content that is specific to the page about statements."""

    statements: list[Entry]
    left_out: LeftOut
    totals: dict[str, Totals]
    request: StatementOptions
    findings: list[Row]
