"""Messages to a client as types, one JSON object per line; see docs/reference/client-protocol.md."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from dbdyno.base.core_types import DrawnStatement


class JobStatement(DrawnStatement):
    """A statement of the job; `query` is True if the statement returns rows."""

    query: bool


class JobScript(TypedDict):
    """A script of the job; `single` is True if the script is one statement."""

    name: str
    single: bool


class JobMessage(TypedDict):
    """Job message: everything that stays the same for all slices."""

    do: Literal["job"]
    protocol: int
    sessions: int
    mode: str
    fetch_size: int | None
    statement_timeout_ms: int | None
    session_sql: list[str]
    scripts: list[JobScript]
    statements: list[JobStatement]


class DrawMessage(TypedDict):
    """The next transactions of each session: for each its script and the values of its statements."""

    do: Literal["draw"]
    transactions: list[Any]


class SliceMessage(TypedDict):
    """Request for one slice, limited by a length or a number of transactions; an open loop also has due times."""

    do: Literal["slice"]
    slice: int
    length_ns: int | None
    transactions: int | None
    due_ns: NotRequired[list[int]]
    give_up_ns: NotRequired[int]


class CloseMessage(TypedDict):
    """Request to close the sessions."""

    do: Literal["close"]


Message = JobMessage | DrawMessage | SliceMessage | CloseMessage
