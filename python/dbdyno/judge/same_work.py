"""Database time for the same work: what the statements that ran in both periods cost in the second period.

Each statement's mean time is computed for both periods and weighted by its calls in the first one (a Laspeyres index).
More calls, other statements or another mix therefore change nothing; only the time per call of the same statement does.

The interval comes from the sub-intervals: the influence of each on the logarithm of the index is a pseudo-value (the
infinitesimal jackknife), and the pseudo-values of the two periods are compared as in `stats.two_stretches`, which
allows for autocorrelation. A statement with few calls says nothing about its spread, so it is left out; the result
includes the share of the first period's statement time that the index covers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dbdyno.snapshot.causes.change import Change
from dbdyno.snapshot.reading.renumbered_statements import fingerprints, renumbered_identifiers
from dbdyno.snapshot.reading.statement_costs import StatementCosts, StatementTotal

CALLS_LEAST, SLOTS_LEAST = 5.0, 3
"""Minimum numbers of calls in each period, and of sub-intervals with calls, for a statement to be in the index."""
Pairs = Mapping[str, tuple[StatementTotal, StatementTotal]]


@dataclass(frozen=True, slots=True)
class CostIndex:
    """Cost in the second period divided by that in the first: `ratio` with its 95 % interval, and the two-sided p."""

    ratio: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class SameWork:
    """Cost of the same calls in the second period, relative to the first.

    Attributes:
        time: Index of statement time.
        effort: Index of the blocks or rows that the calls read; None if these are not counted. Equal effort that takes
            more time points to the machine as the cause.
        covered: Share of the first period's statement time that both indexes cover.
        counts: Number of sub-intervals of the periods.
    """

    time: CostIndex
    effort: CostIndex | None
    covered: float
    counts: tuple[int, int]


def same_work(change: Change, old: StatementCosts, new: StatementCosts) -> SameWork | None:
    """Return the cost of the same work in the second period relative to the first.

    The result is None if a period has fewer than two sub-intervals, or no statement ran often enough in both.
    """
    if min(old.slots, new.slots) < 2:
        return None
    names = renumbered_identifiers(old.totals, new.totals, fingerprints(change.before, change.after))
    judged = {names.get(str(key), str(key)) for key in change.statements}
    a, b = (_join_totals(side.totals, names) for side in (old, new))
    both = {
        key: (a[key], b[key])
        for key in sorted(a.keys() & b.keys() & judged)
        if _is_frequent(a[key]) and _is_frequent(b[key])
    }
    time = _index("ms", old, new, both, names)
    if time is None:
        return None
    every = sum(a[key].ms for key in judged if key in a)
    covered = sum(one.ms for one, _ in both.values()) / every
    return SameWork(time, _index("work", old, new, both, names), covered, (old.slots, new.slots))


def _index(
    what: Literal["ms", "work"], old: StatementCosts, new: StatementCosts, both: Pairs, names: Mapping[str, str]
) -> CostIndex | None:
    """Return the cost of the first period's calls at the second period's means, relative to their actual cost.

    The result is None if either cost is 0.
    """
    from dbdyno.stats.two_stretches import difference

    means = {key: getattr(b, what) / b.calls for key, (_, b) in both.items()}
    expected = sum(a.calls * means[key] for key, (a, _) in both.items())
    spent = sum(getattr(a, what) for a, _ in both.values())
    if spent <= 0 or expected <= 0:
        return None
    # The influence of a sub-interval on log(expected / spent) is linear in the calls and in the cost of each statement.
    first = {key: (-1 / spent, means[key] / expected) for key in both}
    scale = {key: a.calls / b.calls / expected for key, (a, b) in both.items()}
    second = {key: (scale[key], -scale[key] * means[key]) for key in both}
    e_a, e_b = old.weighted_sums(what, _spread(first, names)), new.weighted_sums(what, _spread(second, names))
    log = math.log(expected / spent)
    found = difference(-e_a * len(e_a), log + e_b * len(e_b))
    return CostIndex(expected / spent, math.exp(found.low), math.exp(found.high), found.p)


def _spread(weights: Mapping[str, tuple[float, float]], names: Mapping[str, str]) -> list[tuple[str, float, float]]:
    """Return the weights for every identifier under which a statement was counted."""
    others: dict[str, list[str]] = {}
    for name, stands_for in names.items():
        others.setdefault(stands_for, []).append(name)
    return [(name, *pair) for key, pair in weights.items() for name in (key, *others.get(key, ()))]


def _join_totals(totals: Mapping[str, StatementTotal], names: Mapping[str, str]) -> dict[str, StatementTotal]:
    """Add up the totals of statements that were counted under several identifiers."""
    found: dict[str, StatementTotal] = {}
    for name, one in totals.items():
        key = names.get(name, name)
        had = found.get(key)
        found[key] = one if had is None else _sum(had, one)
    return found


def _sum(first: StatementTotal, second: StatementTotal) -> StatementTotal:
    return StatementTotal(
        first.calls + second.calls, first.ms + second.ms, first.work + second.work, max(first.slots, second.slots)
    )


def _is_frequent(total: StatementTotal) -> bool:
    return total.calls >= CALLS_LEAST and total.slots >= SLOTS_LEAST
