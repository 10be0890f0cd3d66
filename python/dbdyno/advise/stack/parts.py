"""What rules read of a storage stack: its figures by key, and its layers from the host down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stack:
    """A description: figures by `section.key`, those left out with their default or None. `file` is where it stands."""

    file: str
    figures: Mapping[str, float | None]
    words: Mapping[str, str]

    def has(self, key: str) -> bool:
        """Whether a figure was given or has a default."""
        return self.figures.get(key) is not None

    def number(self, key: str) -> float:
        """A figure that is there."""
        value = self.figures[key]
        if value is None:
            raise KeyError(key)
        return value


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: what comes to it, what it lets through, in commands under way at once.

    `each` is the limit of one of its `count` parts that the load uses; None where it is no limit of a queue but the
    number that keeps the part busy (disks, the cable: Little's law). `per_s` is what its limit lets through by
    Little's law, None without a latency.
    """

    name: str
    what: str
    each: float | None
    count: int
    limit: float
    offered: float
    passes: float
    key: str
    per_s: float | None = None

    @property
    def waits(self) -> float:
        """Commands that wait in front of it."""
        return self.offered - self.passes
