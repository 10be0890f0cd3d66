"""How two sets of traces are compared."""

from __future__ import annotations

from dataclasses import dataclass

LEVEL, THRESHOLD = 0.95, 0.02


@dataclass(frozen=True)
class Question:
    """How two sets are compared. `names` are shown; `event` makes its waits the population; `pair`
    is a pattern that pairs their files."""

    names: tuple[str, str] = ("A", "B")
    event: str | None = None
    merge_literals: bool = False
    level: float = LEVEL
    threshold: float = THRESHOLD
    pair: str | None = None
