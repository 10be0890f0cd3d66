"""What a claim is, and what decides whether it holds.

A claim asks for one or more *quantities*, each with a band. A quantity has a value from each
replication (other dice, the same machine); their mean has a 95 % t interval. The quantity holds if
the whole interval lies in the band, does not hold if all of it lies outside, and cannot be told
else. A claim holds if all its quantities do.

**Other dice, the same verdict.** An interval that only just clears the end of a band clears it by
luck: at 3 replications two of fifteen verdicts changed with the seed. A verdict is *steady* if the
99.9 % interval says the same as the 95 % one; until it is, a claim is measured with more
replications, and one that never is says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
    MECHANISM: "comes out of parts that were built before it was asked for",
    FITTED: "stands on a parameter that was fitted to it, or is one",
    LOAD_CHOSEN: "the source tells no load; ours was found by trying until the claim could hold",
    PART_CHOSEN: "a part was replaced after the first one had failed it",
}


@dataclass(frozen=True)
class Part:
    """A quantity of a claim: a value from each replication, and the band asked for (None: open).

    One without any band is there for comparison and decides nothing.
    """

    quantity: str
    values: Sequence[float]
    low: float | None = None
    high: float | None = None
    unit: str = ""


@dataclass(frozen=True)
class Claim:
    """One row of the table: what was published, by whom, and how the model is asked.

    `basis` is what agreement is worth, one of `BASES`. `measure` runs what it needs and returns the
    quantities. `notes` say what the figures mean, which slips the source has, and, where the claim does
    not hold, why and what was tried.
    """

    name: str
    title: str
    source: str
    basis: str
    measure: Callable[[Bench], list[Part]]
    notes: Sequence[str] = field(default=())


def interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float, float]:
    """Mean with its t interval; without spread, or from one value, both ends are the mean."""
    known = [value for value in values if math.isfinite(value)]
    n = len(known)
    if not n:
        return math.nan, math.nan, math.nan
    mean = math.fsum(known) / n
    if n == 1:
        return mean, mean, mean
    from scipy.special import stdtrit

    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / (n - 1))
    half = float(stdtrit(n - 1, (1 + level) / 2)) * deviation / math.sqrt(n)
    return mean, mean - half, mean + half


def verdict(low: float, high: float, band: tuple[float | None, float | None]) -> str:
    """Whether an interval lies in a band, outside of it, or across one of its ends."""
    if math.isnan(low) or math.isnan(high):
        return UNKNOWN
    least = -math.inf if band[0] is None else band[0]
    most = math.inf if band[1] is None else band[1]
    if least <= low and high <= most:
        return HOLDS
    return FAILS if high < least or low > most else UNKNOWN


def _of(part: Part, low: float, high: float) -> str:
    has_band = part.low is not None or part.high is not None
    return verdict(low, high, (part.low, part.high)) if has_band else ""


def _steady(part: Part) -> bool:
    """Whether other dice would hardly change the verdict."""
    said = _of(part, *interval(part.values)[1:])
    return said == "" or said == _of(part, *interval(part.values, STEADY_LEVEL)[1:]) != UNKNOWN


class Measured(TypedDict):
    """A quantity of a claim, with its band and the verdict on it."""

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


class Told(TypedDict, total=False):
    """A claim with what the model gave, or the error that kept it from being measured."""

    claim: str
    title: str
    source: str
    basis: str
    verdict: str
    steady: bool
    parts: list[Measured]
    notes: list[str]
    error: str
    replications: int
    seconds: float


def to_json(claim: Claim, parts: Sequence[Part]) -> Told:
    """A claim with what the model gave, as plain data."""
    rows: list[Measured] = []
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
    # One quantity that surely lies outside decides, whatever the others do.
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
