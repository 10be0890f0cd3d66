"""Ledger of a load, kept outside the engine: attempted and acknowledged commits."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


def payload_of(number: int) -> str:
    """Return the content of a row, which is derived from its number, so that damage is recognised."""
    return hashlib.sha256(str(number).encode()).hexdigest() * 3


@dataclass
class Ledger:
    """Numbers of the attempted and the acknowledged commits; several threads may write to it."""

    tried: set[int] = field(default_factory=set)
    acknowledged: dict[int, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record_attempt(self, number: int) -> None:
        """Record that a commit is about to be sent."""
        with self._lock:
            self.tried.add(number)

    def acknowledge(self, number: int) -> None:
        """Record that the engine has acknowledged a commit."""
        with self._lock:
            self.acknowledged[number] = time.monotonic()


@dataclass(frozen=True)
class Content:
    """Content of an engine's database after its recovery.

    Attributes:
        rows: Number and payload of each row.
        counts: Number of rows of each session, from the counter that each transaction updates along with its row.
        sessions: Session that inserted each row.
        corrupt: Damage that the engine's own checks found; empty if there is none.
    """

    rows: list[tuple[int, str]] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)
    sessions: list[int] = field(default_factory=list)
    corrupt: str = ""


@dataclass(frozen=True)
class Judgement:
    """Differences between the content of a database and the ledger; all fields are empty if there are none."""

    lost: list[int] = field(default_factory=list)
    doubled: list[int] = field(default_factory=list)
    ghosts: list[int] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    halves: list[int] = field(default_factory=list)
    corrupt: str = ""

    @property
    def is_right(self) -> bool:
        """Return True if nothing is wrong."""
        return not (self.lost or self.doubled or self.ghosts or self.damaged or self.halves or self.corrupt)


def judge(ledger: Ledger, content: Content) -> Judgement:
    """Compare the content of a database with the ledger.

    A commit that was attempted but not acknowledged may be present or missing.
    """
    if content.corrupt:
        return Judgement(corrupt=content.corrupt)
    seen = Counter(number for number, _ in content.rows)
    by_session = Counter(content.sessions)
    halves = [one for one in {*content.counts, *by_session} if content.counts.get(one, 0) != by_session.get(one, 0)]
    return Judgement(
        lost=sorted(ledger.acknowledged.keys() - seen.keys()),
        doubled=sorted(number for number, times in seen.items() if times > 1),
        ghosts=sorted(seen.keys() - ledger.tried),
        damaged=sorted(number for number, payload in content.rows if payload != payload_of(number)),
        halves=sorted(halves),
    )


def oldest_ms(ledger: Ledger, numbers: Iterable[int], until: float) -> float:
    """Return how long before `until` the oldest of these commits was acknowledged [ms]; 0 without commits."""
    return max(((until - ledger.acknowledged[number]) * 1e3 for number in numbers), default=0.0)
