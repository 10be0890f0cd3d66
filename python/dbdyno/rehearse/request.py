"""What a rehearsal is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Request:
    """What is rehearsed.

    Attributes:
        title: Name of the rehearsal.
        threshold: Share by which a statement must be slower to count.
        seed: Seed of the order of sides and statements.
        out: Folder for the run.
        change: Changes that make the new side, for the page.
    """

    title: str
    threshold: float
    seed: int
    out: Path
    change: tuple[str, ...] = ()
