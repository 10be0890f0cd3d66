"""The two arms that rules examine, the slower and the faster, and the result of a rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbdyno.study.analysis.explanation.server_counters import ArmCounters


@dataclass(frozen=True)
class Station:
    """A device of a model: its requests per transaction, and the time of one request including its queue [ns]."""

    requests: float
    each_ns: float


@dataclass(frozen=True)
class Pair:
    """Both arms, the slower first, with their counters; `counts` is None if the server's counters are unknown."""

    slow: str
    fast: str
    counts: tuple[ArmCounters, ArmCounters] | None
    cpu: tuple[float, float] | None = None
    """CPU of the server's sessions per transaction [ns], if the host reports it."""
    file_reads: tuple[float, float] | None = None
    """Number of file reads by these sessions per transaction, if the host reports it."""
    file_writes: tuple[float, float] | None = None
    """Number of file writes by these sessions per transaction, if the host reports it."""
    spills: bool = False
    """True if the sessions of the slower arm waited more for temporary files."""
    stations: tuple[Mapping[str, Station], Mapping[str, Station]] = ({}, {})
    """Devices of a model by name, of the slower and of the faster arm."""
    amount_ns: float = 0.0
    """The difference to explain [ns]."""

    def ratio(self, name: str) -> float | None:
        """Return a total of the slower arm divided by that of the faster arm; None if unknown."""
        values = self.values(name)
        return None if values is None else ratio_of(*values)

    def values(self, name: str) -> tuple[float, float] | None:
        """Return a total of the slower and the faster arm; None if unknown."""
        if self.counts is None:
            return None
        slow, fast = (one.blocks if name == "blocks" else one.per_transaction(name) for one in self.counts)
        return None if slow is None or fast is None else (slow, fast)


@dataclass(frozen=True)
class Reason:
    """A cause of some events: its code, its subject, its description, and the figures with their source."""

    code: str
    about: str
    words: str
    evidence: tuple[str, ...] = ()


def ratio_of(first: float, second: float) -> float:
    """Return `first` divided by `second`; infinite if only `second` is 0, and 1 if both are."""
    return first / second if second > 0 else (float("inf") if first > 0 else 1.0)
