"""Content of a benchmark program's output: operations that were timed one by one, or sums over intervals."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

from dbdyno.base.errors import EvidenceError

NS = {"s": 10**9, "ms": 10**6, "us": 10**3}
LONGEST_NS = 10**18
"""Largest plausible time or duration: 31 years."""
FILE, OPTION = "file", "option"
"""Sources of a date that the output does not contain: the file's modification time, or the user."""
Setting = str | int | float


@dataclass
class TimedOperations:
    """Operations of one arm, timed one by one; the lists are parallel.

    Attributes:
        arm: Name of the arm.
        sessions: Number of sessions that ran at once.
        started_ns: Start of each operation, in ns since 1970 or since any other moment.
        elapsed_ns: Length of each operation [ns].
        session: Session number of each operation.
        statement: Statement of each operation.
        error: Error code of each operation, five characters, or None if it succeeded.
        in_turn: True if the output contains the order of the operations but not when they started.
    """

    arm: str
    sessions: int = 1
    started_ns: array[int] = field(default_factory=lambda: array("q"))
    elapsed_ns: array[int] = field(default_factory=lambda: array("q"))
    session: array[int] = field(default_factory=lambda: array("H"))
    statement: list[str] = field(default_factory=list)
    error: list[str | None] = field(default_factory=list)
    in_turn: bool = False

    def add(
        self, started_ns: int, elapsed_ns: int, *, session: int = 0, statement: str = "operation", error: str | None
    ) -> None:
        """Add an operation.

        Raises:
            ValueError: A time is negative or longer than 31 years, or the number of the session is above 65,535.
        """
        if not (0 <= started_ns < 4 * LONGEST_NS and 0 <= elapsed_ns < LONGEST_NS and 0 <= session < 65536):
            raise ValueError("a number is out of range")
        self.started_ns.append(started_ns)
        self.elapsed_ns.append(elapsed_ns)
        self.session.append(session)
        self.statement.append(statement)
        self.error.append(error)


@dataclass(frozen=True)
class Interval:
    """Sums over a span of time; the keys of `values` are names from `UNITS`, or names that the program uses."""

    started_ns: int
    ended_ns: int
    values: Mapping[str, float]


@dataclass(frozen=True)
class Sums:
    """Sums of one arm: interval by interval, or a single one over the whole run."""

    arm: str
    intervals: list[Interval]
    sessions: int = 1


UNITS = {
    "transactions": "count",
    "failed": "count",
    "throughput": "1/s",
    "mean": "ns",
    "p50": "ns",
    "p90": "ns",
    "p95": "ns",
    "p99": "ns",
    "p99.9": "ns",
    "min": "ns",
    "max": "ns",
    "sd": "ns",
}
"""Names of sums that programs have in common, with their units; other names have no unit."""


@dataclass
class Contents:
    """Content of one file: either `timed` or `sums`.

    Attributes:
        program: Name of the benchmark program.
        version: Versions of the program and of the server, as in the output; empty if it has none.
        benchmark: Name of the benchmark; empty if the output does not contain it.
        settings: Settings that identify the benchmark, such as scale and number of clients.
        timed: Operations by arm.
        sums: Sums by arm.
        totals: Further numbers for the whole run, by name.
        unread: Number of lines that could not be read, and the first of them.
        ended_ns: End of the benchmark in ns since 1970; None if the output does not contain a time.
        dated_by: Source of `ended_ns`: "" for the output itself, else `FILE` or `OPTION`.
    """

    program: str
    version: str = ""
    benchmark: str = ""
    settings: dict[str, Setting] = field(default_factory=dict)
    timed: list[TimedOperations] = field(default_factory=list)
    sums: list[Sums] = field(default_factory=list)
    totals: dict[str, float] = field(default_factory=dict)
    unread: list[int] = field(default_factory=list)
    ended_ns: int | None = None
    dated_by: str = ""

    def arms(self) -> list[str]:
        """Return the names of the arms."""
        return [*(arm.arm for arm in self.timed), *(arm.arm for arm in self.sums)]


def finite(value: object, name: str, where: str) -> float:
    """Return a number from a file, after checking that it is finite and not negative.

    Raises:
        EvidenceError: The value is not such a number.
    """
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not 0 <= number < LONGEST_NS:
        raise EvidenceError(
            f"{name} is {str(value)[:40]!r}, expected a number of 0 or more",
            where=where,
            next_step="correct the file, or export it again",
        )
    return number


def known_values(**values: float | None) -> dict[str, float]:
    """Return the values that are not missing; `p99_9` stands for p99.9."""
    return {
        name.replace("_9", ".9"): value for name, value in values.items() if value is not None and math.isfinite(value)
    }
