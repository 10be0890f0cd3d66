"""Why something took as long as it did: one shape for runs, traces, cells and snapshots, and for every renderer.

Causes are parts of one amount: their amounts and the rest add up to it. A cause has its share, its interval where the
evidence repeats, and the place of its evidence. Where the evidence does not carry it, nothing is named: `withheld`
says why, and `next` what would.

    >>> one = Cause("wait", "WALSync", "waits for WALSync", 291e3, share=0.93)
    >>> Why("a transaction", "ns", 312e3, causes=(one,), rest=21e3).as_dict()["causes"][0]["about"]
    'WALSync'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

MOST = 3
"""Causes that are named; what is left is the rest."""
LEAST_SHARE = 0.1
"""A cause of a smaller share of the amount is not named."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause. `code` is its kind, `about` the event, statement or object; `amount` in the unit of its `Why`, with
    its interval; `evidence` are figures with their place, one a line."""

    code: str
    about: str
    sentence: str
    amount: float | None
    low: float | None = None
    high: float | None = None
    share: float | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Why:
    """The causes of an amount: of a difference, or of a time (`before` is None then).

    `of` names it in words; `unit` is one of `dbdyno.page`, and ratios where causes are shares alone. `rest` is what no
    named cause explains. `arm` is the arm of the run it is about.
    """

    of: str
    unit: str
    amount: float | None
    before: float | None = None
    after: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    blocks: int | None = None
    causes: tuple[Cause, ...] = ()
    rest: float | None = None
    rest_share: float | None = None
    withheld: str = ""
    next: str = ""
    arm: int | None = None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As it stands in models: values of JSON."""
        made = asdict(self) | {"notes": list(self.notes)}
        made["causes"] = [asdict(one) | {"evidence": list(one.evidence)} for one in self.causes]
        return made


def chosen(causes: Sequence[Cause], most: int = MOST) -> tuple[Cause, ...]:
    """The largest causes that are worth a name, those that work in the direction of the whole first."""
    worth = [one for one in causes if one.share is not None and abs(one.share) >= LEAST_SHARE]
    return tuple(sorted(worth, key=lambda one: -(one.share or 0.0))[:most])


def rest(amount: float, causes: Sequence[Cause]) -> tuple[float, float | None]:
    """What the causes leave, and its share."""
    left = amount - sum(one.amount or 0.0 for one in causes)
    return left, left / amount if amount else None
