"""The interface of an engine's module: it reads a target, samples its sessions, judges intervals and reports them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from dbdyno.base.closeable import Closeable
from dbdyno.base.json_types import JsonObject
from dbdyno.base.sections import Part
from dbdyno.snapshot.engines.registry import engine
from dbdyno.snapshot.engines.view import Options, Verdict, View
from dbdyno.snapshot.sessions.samples import Source

if TYPE_CHECKING:
    from dbdyno.snapshot.engines.metric import Metric
    from dbdyno.snapshot.reading.ends import Ends
    from dbdyno.snapshot.reading.interval import Interval
    from dbdyno.snapshot.store.folder import Snapshot


class Sampler(Protocol):
    """A sampler of the sessions between two snapshots."""

    samples: int
    problem: str | None

    @property
    def source(self) -> Source | None:
        """Return how sessions are sampled (from memory or by queries), or None until that is known."""
        ...

    def start(self) -> None:
        """Begin sampling."""

    def stop(self) -> None:
        """Stop sampling, and keep what was seen."""

    def take(self) -> tuple[list[View], int]:
        """Return the views seen since the last call, and the number of looks."""
        ...


class Collector(Closeable):
    """A reader of one target, which keeps its connections between the snapshots of a watch; a context manager.

    Attributes:
        name: The target's name in the store, without secrets.
        wanted_texts: Statements that sampled sessions worked on, whose texts are read as well.
    """

    name: str

    def __init__(self, options: Options) -> None:
        self.options = options
        self.wanted_texts: list[str] = []
        self._facts: JsonObject = {}

    @property
    def at_ns(self) -> int:
        """Return when the last snapshot's counters were read, in ns since 1970 by the server's clock."""
        return int(self._facts["at_us"]) * 1000

    @abstractmethod
    def facts(self) -> JsonObject:
        """Return what the last snapshot recorded about the server, as plain JSON values."""

    @abstractmethod
    def collect(self, before: Snapshot | None) -> list[View]:
        """Read all views and return their current contents; `before` is the target's last snapshot.

        Raises:
            SnapshotError: The login fails, the server is gone, or does not allow its basic views to be read.
        """

    @abstractmethod
    def sampler(self, period_s: float) -> Sampler:
        """Return a sampler of the target's sessions, with its own connection and this period in seconds."""


class Engine(Protocol):
    """The interface of an engine's module."""

    ENGINE: str

    def open_collector(self, dsn: str, options: Options) -> Collector:
        """Connect, and return a collector.

        Raises:
            SnapshotError: The server does not answer.
        """
        ...

    def judge(self, interval: Ends) -> Mapping[tuple[str, str | None], Verdict]:
        """Return a verdict for each scope; a scope that is missing is ok."""
        ...

    def metrics(self, interval: Interval) -> Sequence[tuple[Metric, float | None]]:
        """Return the metrics of a sub-interval."""
        ...

    def sections(self, interval: Interval, top: int) -> Sequence[Part]:
        """Return the sections of the report, in order."""
        ...


def engine_module(name: str) -> Engine:
    """Return an engine's module."""
    module: Engine = engine(name)
    return module
