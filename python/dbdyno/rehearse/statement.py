"""Statements of a load, with the values for their execution.

>>> point = Parameters("select * from t where id = $1", (b"7",))
>>> Statement(1, "select * from t where id = $1", calls=10, total_ns=5_000, samples=(point,)).mean_ns
500.0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Origin = Literal["captured", "data", "type", "none"]
"""Origin of values: a capture or log, the column's statistics, the parameter's type, or no parameters."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Text and parameter values of one execution, ready to send.

    Attributes:
        text: The text as it is sent.
        values: Values of `$1`, `$2`, ...; None is NULL.
        binary: True for each value in binary format; empty if all are text.
        types: OIDs of the types that the client named; 0 leaves a type to the server.
        elapsed_ns: Time that the execution took when it was captured [ns]; None if unknown.
        origin: Where the values come from.
        is_simple: True if it was sent as a simple query.
        is_prepared: True to prepare it under a name first, so that the server may choose a generic plan.
    """

    text: str
    values: tuple[bytes | None, ...] = ()
    binary: tuple[bool, ...] = ()
    types: tuple[int, ...] = ()
    elapsed_ns: int | None = None
    origin: Origin = "captured"
    is_simple: bool = False
    is_prepared: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """A distinct statement of a load.

    Attributes:
        number: Its number in the rehearsal, by weight, from 1.
        text: Its text without literals.
        calls: Number of executions in the load.
        total_ns: Time of all executions in the load [ns].
        failed: Number of executions that failed in the load.
        user: Role that executed it; empty if unknown.
        settings: Statements that changed settings of its session before it, such as `SET search_path = app`.
        samples: Executions that represent all of them.
        left_out: Reason why it is not rehearsed; empty if it is.
        uncompared: Reason why its answers may legitimately differ; empty if none is known.
    """

    number: int
    text: str
    calls: int
    total_ns: int
    failed: int = 0
    user: str = ""
    settings: tuple[str, ...] = ()
    samples: tuple[Parameters, ...] = ()
    left_out: str = ""
    uncompared: str = ""

    @property
    def mean_ns(self) -> float:
        """Return the mean time of an execution in the load [ns]."""
        return self.total_ns / self.calls if self.calls else 0.0


@dataclass(frozen=True, slots=True)
class Load:
    """Statements of a load, and their origin.

    Attributes:
        source: The capture's folder, or the server.
        kind: Kind of the source.
        statements: The distinct statements, the one with the most time first.
        notes: Sentences on what the source lacks.
    """

    source: str
    kind: Literal["capture", "snapshot", "statements"]
    statements: Sequence[Statement]
    notes: tuple[str, ...] = ()

    @property
    def calls(self) -> int:
        """Return the number of executions of all statements."""
        return sum(one.calls for one in self.statements)
