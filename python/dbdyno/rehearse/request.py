"""Request for a rehearsal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """How the capture is replayed after the statements were measured.

    Attributes:
        capture: Folder of the capture.
        speeds: Speeds in addition to the capture's own, in ascending order; 0 leaves out think times.
        until_ns: Part of the capture that is replayed, from its beginning [ns]; None for all of it.
        messages: Folder with the decrypted messages if those in the capture's folder are encrypted.
    """

    capture: Path
    speeds: tuple[float, ...] = ()
    until_ns: int | None = None
    messages: Path | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """All inputs and options of a rehearsal.

    Attributes:
        title: Name of the rehearsal.
        threshold: Share by which a statement must be slower to count.
        seed: Seed of the order of sides and statements.
        out: Folder for the run.
        change: Changes that define the new side, as shown on the page.
        replay: How the capture is replayed afterwards; None if it is not.
        allowed: Functions and tables that are used although a rollback does not undo what they do.
    """

    title: str
    threshold: float
    seed: int
    out: Path
    change: tuple[str, ...] = ()
    replay: ReplayRequest | None = None
    allowed: tuple[str, ...] = ()
