"""Explanation of an elapsed time or difference by its causes: one structure for runs, traces, cells and snapshots.

Causes are parts of one amount: their amounts and the rest add up to it. A cause has its share, its interval if the
evidence has repeated measurements, and the place of its evidence. If the evidence does not support an explanation, no
cause is named: `withheld` gives the reason, and `next` what would allow an explanation.

    >>> one = Cause("wait", "WALSync", "waits for WALSync", 291e3, share=0.93)
    >>> CausalExplanation("a transaction", "ns", 312e3, causes=(one,), rest=21e3).as_dict()["causes"][0]["about"]
    'WALSync'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from dbdyno.base.json_types import JsonObject

MOST = 3
"""Maximum number of causes that are named; the amounts of all others are part of the rest."""
LEAST_SHARE = 0.1
"""Minimum share of the amount that a cause must have to be named."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of an amount.

    `code` is its kind; `about` is the event, statement or object. `amount`, `low` and `high` are in the unit of the
    `CausalExplanation`. `evidence` holds figures with their place, one per line.
    """

    code: str
    about: str
    sentence: str
    amount: float | None
    low: float | None = None
    high: float | None = None
    share: float | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CausalExplanation:
    """The causes of an amount: a difference, or a time (then `before` is None).

    `of` names the amount in words. `unit` is one of the units of `dbdyno.page`; it is a ratio unit if causes are only
    known as shares. `unexplained` is the part of the amount that no named cause explains. `arm` is the arm of the run
    in question.
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

    def as_dict(self) -> JsonObject:
        """Return the explanation as JSON values, as it is stored in models."""
        made = asdict(self) | {"notes": list(self.notes)}
        made["causes"] = [asdict(one) | {"evidence": list(one.evidence)} for one in self.causes]
        return made


def largest_causes(causes: Sequence[Cause], limit: int = MOST) -> tuple[Cause, ...]:
    """Return the `limit` largest causes with a share of at least `LEAST_SHARE`.

    They are sorted by signed share: causes that work in the direction of the whole amount come first.
    """
    worth = [one for one in causes if one.share is not None and abs(one.share) >= LEAST_SHARE]
    return tuple(sorted(worth, key=lambda one: -(one.share or 0.0))[:limit])


def unexplained(amount: float, causes: Sequence[Cause]) -> tuple[float, float | None]:
    """Return the amount that the causes do not explain, and its share of `amount` (None if `amount` is zero)."""
    left = amount - sum(one.amount or 0.0 for one in causes)
    return left, left / amount if amount else None
