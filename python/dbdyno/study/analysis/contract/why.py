"""Types of the part `why` of analysis.json, which explains a difference or a time; `declared` has the other parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def key(says: str = "", record: type | None = None) -> Any:
    """Return a field for a key of the file: its documentation, and the record type of its entries if declared."""
    return field(default=None, metadata={"says": says, "record": record})


@dataclass(frozen=True, slots=True)
class Reason:
    """A cause of a difference, or of a time."""

    code: str | None = key(
        "`index`, `plan`, `growth`, `work`, `cache`, `lock`, `checkpoint`, `device`, `processor`, `queue`, `cpu`, "
        "`ready`, `wait`, or a kind of its source"
    )
    about: str | None = key("the event, table, index or statement")
    sentence: str | None = key()
    amount: float | None = key("in the unit of the whole")
    low: float | None = key("jackknife over blocks")
    high: float | None = key()
    share: float | None = key("of the whole")
    evidence: list[str] | None = key("figures with their place")


@dataclass(frozen=True, slots=True)
class Explained:
    """The causes of one difference, or of one time."""

    of: str | None = key()
    unit: str | None = key()
    amount: float | None = key("with one arm, where `before` is null, the time itself")
    before: float | None = key()
    after: float | None = key()
    low: float | None = key()
    high: float | None = key()
    level: float | None = key()
    blocks: int | None = key()
    causes: list[Reason] | None = key("up to three, largest first, waits for the client last", Reason)
    rest: float | None = key("what the causes leave unexplained")
    rest_share: float | None = key()
    withheld: str | None = key("why no cause is named; empty where some are looked for")
    next: str | None = key()
    arm: int | None = key()
    notes: list[str] | None = key()
