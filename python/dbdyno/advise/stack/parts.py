"""Kinds of evidence about a storage stack: its figures by key, and its layers from the host down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stack:
    """A description: figures by `section.key`, with the default or None for an omitted figure; `file` is its path."""

    file: str
    figures: Mapping[str, float | None]
    words: Mapping[str, str]

    def has(self, key: str) -> bool:
        """Return True if a figure is described or has a default."""
        return self.figures.get(key) is not None

    def number(self, key: str) -> float:
        """Return a figure that is described or has a default.

        Raises:
            KeyError: the figure is not known.
        """
        value = self.figures[key]
        if value is None:
            raise KeyError(key)
        return value


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: its demand, and the number of outstanding commands that it lets through.

    `each` is the limit of one of the `count` parts that the load uses. It is None if the limit is not a queue but the
    number of commands that keeps the part busy (disks, the cable: Little's law). `per_s` is the rate [commands/s] that
    this limit lets through by Little's law, None if no latency is known.
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
        """Return the number of commands that wait in front of this layer."""
        return self.offered - self.passes
