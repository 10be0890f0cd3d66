"""Options of a comparison of two sets of traces."""

from __future__ import annotations

from dataclasses import dataclass

LEVEL, THRESHOLD = 0.95, 0.02


@dataclass(frozen=True)
class ComparisonOptions:
    """Options of a comparison.

    Attributes:
        names: Names of the two sets.
        event: Event whose waits are compared; None to compare the client's calls.
        merge_literals: True to match all statements by their text without literals.
        level: Confidence level of the intervals.
        threshold: Smallest relative difference that matters.
        pair: Pattern that pairs the files of the sets; None for no pairs.
    """

    names: tuple[str, str] = ("A", "B")
    event: str | None = None
    merge_literals: bool = False
    level: float = LEVEL
    threshold: float = THRESHOLD
    pair: str | None = None
