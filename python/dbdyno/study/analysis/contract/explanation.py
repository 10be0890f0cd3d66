"""Types of the part `why` of analysis.json, which explains a difference or a time; see also `declarations`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def documented_field(says: str = "", record: type | None = None) -> Any:
    """Return the declaration of a key of the file: its description (`says`) and the record type of its entries."""
    return field(default=None, metadata={"says": says, "record": record})


@dataclass(frozen=True, slots=True)
class Reason:
    """One cause of a difference between two arms, or of the time of one arm."""

    code: str | None = documented_field(
        "`index`, `plan`, `growth`, `work`, `cache`, `lock`, `checkpoint`, `device`, `processor`, `queue`, `cpu`, "
        "`ready`, `wait`, or a kind of its source"
    )
    about: str | None = documented_field("the event, table, index or statement")
    sentence: str | None = documented_field()
    amount: float | None = documented_field("in the unit of the whole")
    low: float | None = documented_field("jackknife over blocks")
    high: float | None = documented_field()
    share: float | None = documented_field("of the whole")
    evidence: list[str] | None = documented_field("figures with their source")


@dataclass(frozen=True, slots=True)
class Explanation:
    """The causes of one difference between two arms, or of the time of one arm."""

    of: str | None = documented_field()
    unit: str | None = documented_field()
    amount: float | None = documented_field("with one arm, where `before` is null, the time itself")
    before: float | None = documented_field()
    after: float | None = documented_field()
    low: float | None = documented_field()
    high: float | None = documented_field()
    level: float | None = documented_field()
    blocks: int | None = documented_field()
    causes: list[Reason] | None = documented_field("up to six, largest first, waits for the client last", Reason)
    rest: float | None = documented_field("the part that the causes leave unexplained")
    rest_share: float | None = documented_field()
    withheld: str | None = documented_field("why no cause is named; empty if causes are searched for")
    next: str | None = documented_field()
    arm: int | None = documented_field()
    notes: list[str] | None = documented_field()
