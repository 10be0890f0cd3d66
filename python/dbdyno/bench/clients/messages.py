"""What a client is told, a JSON object a line: [the protocol](docs/reference/client-protocol.md) as types."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from dbdyno.base.core_types import DrawnStatement


class StatementLine(DrawnStatement):
    """A statement of the job; `query`: it gives rows."""

    query: bool


class ScriptLine(TypedDict):
    """A script of the job; `single`: it is one statement."""

    name: str
    single: bool


class JobLine(TypedDict):
    """Everything that stays as it is."""

    do: Literal["job"]
    protocol: int
    sessions: int
    mode: str
    fetch_size: int | None
    statement_timeout_ms: int | None
    session_sql: list[str]
    scripts: list[ScriptLine]
    statements: list[StatementLine]


class DrawLine(TypedDict):
    """The next transactions of each session: script, and values of each statement."""

    do: Literal["draw"]
    transactions: list[Any]


class SliceLine(TypedDict):
    """One slice: of a length or of a number of transactions, in an open loop with the times at which they are due."""

    do: Literal["slice"]
    slice: int
    length_ns: int | None
    transactions: int | None
    due_ns: NotRequired[list[int]]
    give_up_ns: NotRequired[int]


class CloseLine(TypedDict):
    """The end."""

    do: Literal["close"]


Message = JobLine | DrawLine | SliceLine | CloseLine
