"""Types of the core's report about an import of logs."""

from __future__ import annotations

from typing import TypedDict


class FileReport(TypedDict):
    """What was read from one file; times are in ns since 1970."""

    path: str
    bytes: int
    entries: int
    events: int
    late: int
    from_ns: int | None
    to_ns: int | None
    broken: str | None


class Reason(TypedDict):
    """Entries or statements that could not be used for one reason.

    `unread`: an entry could not be read. `left_out`: a statement is kept, but a replay leaves it out.
    """

    reason: str
    count: int
    places: list[str]
    unread: bool
    left_out: bool


class Report(TypedDict):
    """The core's report about an import of logs."""

    files: list[FileReport]
    sessions: int
    calls: int
    waits: int
    executions: int
    failed: int
    stateless: int
    untimed: int
    begun_before: int
    prepared_before: int
    with_parameters: int
    shortest_ns: int | None
    first_ns: int | None
    last_ns: int | None
    databases: dict[str, int]
    version: str
    by_gaps: bool
    zones: list[str]
    coarse: bool
    year_assumed: bool
    unused: list[Reason]
