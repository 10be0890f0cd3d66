"""Declaration of a key of a plan's tables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Key:
    """One key of a table of the plan."""

    name: str
    type: str
    meaning: str
    example: str | None = None
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    required: bool = False
