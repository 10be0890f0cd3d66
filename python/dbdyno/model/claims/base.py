"""Definition of a claim and the rule that decides whether it holds.

A claim has one or more *quantities*, each with a band. A quantity has one value per replication (another random seed,
the same machine); their mean has a 95 % t interval. The quantity holds if the whole interval is within the band, does
not hold if the whole interval is outside, and is undecided otherwise. A claim holds if all its quantities do.

**Another seed, the same verdict.** An interval that only just stays inside a band may do so by chance: at 3
replications two of fifteen verdicts changed with the seed. A verdict is *steady* if the 99.9 % interval gives the same
verdict as the 95 % one. Until it is steady, a claim is measured with more replications; a claim that never becomes
steady is reported as such.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from dbdyno.model.claims.bench import Bench

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot tell"
LEVEL = 0.95
STEADY_LEVEL = 0.999

MECHANISM = "mechanism"
FITTED = "fitted"
LOAD_CHOSEN = "load chosen after failing"
PART_CHOSEN = "mechanism chosen after failing"
BASES = {
    MECHANISM: "follows from parts that were built before the claim was checked",
    FITTED: "depends on a parameter that was fitted to it, or is such a parameter",
    LOAD_CHOSEN: "the source states no load; ours was found by trial until the claim could hold",
    PART_CHOSEN: "a part was replaced after its first version had failed the claim",
}


@dataclass(frozen=True)
class ClaimQuantity:
    """A quantity of a claim: one value per replication, and the band in which it must be (None: no limit).

    A quantity without any band is shown for comparison only and decides nothing.
    """

    quantity: str
    values: Sequence[float]
    low: float | None = None
    high: float | None = None
    unit: str = ""


@dataclass(frozen=True)
class Claim:
    """One claim: what was published, by whom, and how the model is measured.

    `basis`, one of `BASES`, says how much it proves if the model agrees with the claim. `measure` runs the model and
    returns the quantities. `notes` explain the figures and mistakes in the source, and, if the claim does not hold, the
    reason and what was tried.
    """

    name: str
    title: str
    source: str
    basis: str
    measure: Callable[[Bench], list[ClaimQuantity]]
    notes: Sequence[str] = field(default=())


def interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float, float]:
    """Return the mean and its t interval as (mean, low, high).

    Non-finite values are ignored. With one value or without spread both ends equal the mean; without values all three
    are NaN.
    """
    known = [value for value in values if math.isfinite(value)]
    n = len(known)
    if not n:
        return math.nan, math.nan, math.nan
    mean = math.fsum(known) / n
    if n == 1:
        return mean, mean, mean
    from dbdyno.stats.distributions import t_quantile

    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / (n - 1))
    half = float(t_quantile(n - 1, (1 + level) / 2)) * deviation / math.sqrt(n)
    return mean, mean - half, mean + half


def verdict(low: float, high: float, band: tuple[float | None, float | None]) -> str:
    """Return the verdict on an interval: inside the band (`HOLDS`), outside (`FAILS`) or across an end (`UNKNOWN`)."""
    if math.isnan(low) or math.isnan(high):
        return UNKNOWN
    least = -math.inf if band[0] is None else band[0]
    most = math.inf if band[1] is None else band[1]
    if least <= low and high <= most:
        return HOLDS
    return FAILS if high < least or low > most else UNKNOWN


def _of(part: ClaimQuantity, low: float, high: float) -> str:
    has_band = part.low is not None or part.high is not None
    return verdict(low, high, (part.low, part.high)) if has_band else ""


def _steady(part: ClaimQuantity) -> bool:
    """Return True if another seed would hardly change the verdict: the 99.9 % interval gives the same one."""
    said = _of(part, *interval(part.values)[1:])
    return said == "" or said == _of(part, *interval(part.values, STEADY_LEVEL)[1:]) != UNKNOWN


class MeasuredQuantity(TypedDict):
    """A measured quantity of a claim, with its band and verdict."""

    quantity: str
    unit: str
    value: float
    low: float
    high: float
    band_low: float | None
    band_high: float | None
    values: list[float]
    verdict: str
    steady: bool


class SeedVerdict(TypedDict):
    """The verdict on a claim at one seed, and how many replications it took."""

    seed: int
    verdict: str
    steady: bool
    replications: int


class ClaimResult(TypedDict, total=False):
    """A claim with its measured quantities, or with the error that prevented the measurement."""

    claim: str
    title: str
    source: str
    basis: str
    verdict: str
    steady: bool
    parts: list[MeasuredQuantity]
    notes: list[str]
    error: str
    replications: int
    seconds: float
    by_seed: list[SeedVerdict]


def combine_seeds(found: Mapping[int, ClaimResult]) -> ClaimResult:
    """Return the result of a claim over several seeds: the figures of the first seed, and the verdict if all agree.

    If the seeds do not agree, the verdict is `UNKNOWN`, and a note says which seed gave which verdict.
    """
    first = next(iter(found.values()))
    if len(found) == 1:
        return first
    rows: list[SeedVerdict] = [
        {
            "seed": seed,
            "verdict": one["verdict"],
            "steady": one["steady"],
            "replications": one["replications"],
        }
        for seed, one in found.items()
    ]
    verdicts = list(dict.fromkeys(row["verdict"] for row in rows))
    same = len(verdicts) == 1
    at = {word: ", ".join(str(row["seed"]) for row in rows if row["verdict"] == word) for word in verdicts}
    note = (
        f"the verdict is the same at the seeds {at[verdicts[0]]}"
        if same
        else "the verdict depends on the seed: " + "; ".join(f"{word} at {seeds}" for word, seeds in at.items())
    )
    merged: ClaimResult = {
        **first,
        "verdict": verdicts[0] if same else UNKNOWN,
        "steady": same and all(row["steady"] for row in rows),
        "seconds": round(math.fsum(one["seconds"] for one in found.values()), 2),
        "notes": [note, *first["notes"]],
        "by_seed": rows,
    }
    return merged


def to_json(claim: Claim, parts: Sequence[ClaimQuantity]) -> ClaimResult:
    """Return a claim with its measured quantities as plain data."""
    rows: list[MeasuredQuantity] = []
    for part in parts:
        mean, low, high = interval(part.values)
        rows.append(
            {
                "quantity": part.quantity,
                "unit": part.unit,
                "value": mean,
                "low": low,
                "high": high,
                "band_low": part.low,
                "band_high": part.high,
                "values": list(part.values),
                "verdict": _of(part, low, high),
                "steady": _steady(part),
            }
        )
    verdicts = {row["verdict"] for row in rows} - {""}
    whole = FAILS if FAILS in verdicts else HOLDS if verdicts == {HOLDS} else UNKNOWN
    # A single quantity that is certainly outside its band decides, whatever the others are.
    deciding = [row for row in rows if row["verdict"] == FAILS] if whole == FAILS else rows
    steady = (any if whole == FAILS else all)(row["steady"] for row in deciding)
    return {
        "claim": claim.name,
        "title": claim.title,
        "source": claim.source,
        "basis": claim.basis,
        "verdict": whole,
        "steady": steady,
        "parts": rows,
        "notes": list(claim.notes),
    }
