"""What the module of an engine offers: something that reads a target, samples its sessions, judges and shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

from dbdyno.snapshot.engines.registry import engine
from dbdyno.snapshot.engines.view import Options, Verdict, View
from dbdyno.snapshot.model import Part

if TYPE_CHECKING:
    from dbdyno.snapshot.engines.metric import Metric
    from dbdyno.snapshot.reading.ends import Ends
    from dbdyno.snapshot.reading.interval import Interval
    from dbdyno.snapshot.store.folder import Snapshot


class Sampler(Protocol):
    """What looks at the sessions between two snapshots."""

    samples: int
    problem: str | None

    def start(self) -> None:
        """Begin to look."""

    def stop(self) -> None:
        """Stop, keep what was seen."""

    def take(self) -> tuple[list[View], int]:
        """The views seen since the last call, and the number of looks."""
        ...


class Collector(Protocol):
    """What reads one target; keeps its connections between the snapshots of a watch."""

    wanted_texts: list[str]
    """Statements that the sampled sessions worked on: their texts are read as well."""

    @property
    def name(self) -> str:
        """The target's name in the store, without secrets."""
        ...

    @property
    def at_ns(self) -> int:
        """When the last snapshot's counters were read, by the server's clock, since 1970."""
        ...

    def facts(self) -> dict[str, Any]:
        """What the last snapshot knows of the server; plain JSON."""
        ...

    def collect(self, before: Snapshot | None) -> list[View]:
        """All views now; `before` is the target's last snapshot."""
        ...

    def sampler(self, period_s: float) -> Sampler:
        """What samples its sessions, so often."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, *ending: object) -> None: ...


class Engine(Protocol):
    """What an engine's module offers."""

    ENGINE: str

    def open_collector(self, dsn: str, options: Options) -> Collector:
        """Connects; raises `SnapshotError`."""
        ...

    def judge(self, interval: Ends) -> Mapping[tuple[str, str | None], Verdict]:
        """The verdict of each scope; one that is missing is ok."""
        ...

    def metrics(self, interval: Interval) -> Sequence[tuple[Metric, float | None]]:
        """The metrics of a sub-interval."""
        ...

    def sections(self, interval: Interval, top: int) -> Sequence[Part]:
        """The sections of the report, in order."""
        ...


def offered(name: str) -> Engine:
    """What an engine's module offers."""
    module: Engine = engine(name)
    return module
