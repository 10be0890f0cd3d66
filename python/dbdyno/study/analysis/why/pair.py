"""The two arms that rules look at, the slower and the faster, and what a rule says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbdyno.study.analysis.why.server_counters import Counted


@dataclass(frozen=True)
class Station:
    """A device of a model: its requests for a transaction, and the time of one with its queue."""

    requests: float
    each_ns: float


@dataclass(frozen=True)
class Pair:
    """Both arms, the slower and the faster; what was counted of each, None where it was not."""

    slow: str
    fast: str
    counts: tuple[Counted, Counted] | None
    cpu: tuple[float, float] | None = None
    """CPU of the server's sessions for a transaction, where the host says it."""
    file_reads: tuple[float, float] | None = None
    """How often these read from files, for a transaction."""
    file_writes: tuple[float, float] | None = None
    """How often these wrote to files."""
    spills: bool = False
    """Whether sessions of the slower one were seen to wait more for temporary files."""
    stations: tuple[Mapping[str, Station], Mapping[str, Station]] = ({}, {})
    """Of a model: its devices, by name."""
    amount_ns: float = 0.0
    """The difference that is to be explained."""

    def ratio(self, name: str) -> float | None:
        """How many times as much of a total the slower one counted; None where it is not known."""
        values = self.values(name)
        return None if values is None else ratio_of(*values)

    def values(self, name: str) -> tuple[float, float] | None:
        """A total of the slower and the faster."""
        if self.counts is None:
            return None
        slow, fast = (one.blocks if name == "blocks" else one.per(name) for one in self.counts)
        return None if slow is None or fast is None else (slow, fast)


@dataclass(frozen=True)
class Reason:
    """A cause behind some events: its code, what it is about, words, figures with their place."""

    code: str
    about: str
    words: str
    evidence: tuple[str, ...] = ()


def ratio_of(one: float, other: float) -> float:
    """How many times the other the one is; infinite where the other is nothing."""
    return one / other if other > 0 else (float("inf") if one > 0 else 1.0)
