"""Work that was added between two periods: new statements, and statements whose calls grew out of proportion.

How often the statements of an application are called follows its load: when the load doubles, so do they all. A
statement that is new, or that is called far more often than the others have become, is work that a release added. A
rare statement may be missing in the first period by chance, so it counts only where chance would have shown it; and
its share of all calls must differ between the sub-intervals of the periods by more than chance, p < 0.001.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.snapshot.causes.change import LEAST_MS, Change, Key, Pair
from dbdyno.snapshot.reading.statement_costs import StatementCosts
from dbdyno.stats.two_stretches import difference

EXPECTED = 10.0
"""So many calls the first period would have had at the second's rate, for their absence to say something."""
OUT_OF_PROPORTION, CERTAIN = 1.5, 0.001
"""Calls of so many times the others' growth, with such a p, are out of proportion."""
MATERIAL = 0.01
"""Work below such a part of the first period's database time is not told."""


@dataclass(frozen=True, slots=True)
class Added:
    """Work that came or went, in milliseconds of statement time a second. `statement`: the one with most of it.
    `is_new`: it was not called before. `usual`: how many times as often the other statements are called."""

    ms: float
    statement: Pair
    is_new: bool
    usual: float
    share: float


def added(change: Change, costs: tuple[StatementCosts, StatementCosts]) -> Added | None:
    """Return the work that was added, less what new statements replaced; None below what matters."""
    usual = usual_growth(change)
    parts = {key: _extra(change, one, usual) for key, one in change.statements.items()}
    more = {key: ms for key, ms in parts.items() if ms > 0}
    gone = sum(-ms for ms in parts.values() if ms < 0)
    whole = sum(more.values())
    net = whole - gone
    if not more or net < max(MATERIAL * change.spent_ms[0], LEAST_MS) or change.grown_ms <= 0:
        return None
    first = max(more, key=lambda key: more[key])
    if not _certain(first, costs):
        return None
    pair = change.statements[first]
    return Added(net, pair, not pair.before.get("calls"), usual, more[first] / whole)


def usual_growth(change: Change) -> float:
    """How many times as often statements of both periods are called: the median, each weighted by its time."""
    both = [one for one in change.statements.values() if one.before.get("calls") and one.after.get("calls")]
    ratios = sorted((one.after["calls"] / one.before["calls"], one.before.get("ms", 0.0)) for one in both)
    half, passed = sum(weight for _, weight in ratios) / 2, 0.0
    for ratio, weight in ratios:
        passed += weight
        if passed >= half:
            return ratio
    return 1.0


def _extra(change: Change, one: Pair, usual: float) -> float:
    """Milliseconds a second of calls beyond what the load explains; below zero where a statement is gone."""
    lengths = change.before.seconds, change.after.seconds
    old, new = (side.get("calls", 0.0) * length for side, length in zip((one.before, one.after), lengths, strict=True))
    expected_old, expected_new = (new / lengths[1] * lengths[0], old / lengths[0] * lengths[1] * usual)
    if not old:
        return one.after.get("ms", 0.0) if expected_old >= EXPECTED else 0.0
    if not new:
        return -one.before.get("ms", 0.0) if expected_new >= EXPECTED else 0.0
    if new < OUT_OF_PROPORTION * expected_new:
        return 0.0
    return (new - expected_new) / lengths[1] * one.per_call("ms")[0]


def _certain(statement: Key, costs: tuple[StatementCosts, StatementCosts]) -> bool:
    """Whether a statement's calls, beside all others of their sub-intervals, grew by more than chance."""
    shares = []
    for side in costs:
        own = side.weighed("ms", [(str(statement), 0.0, 1.0)])
        every = side.weighed("ms", [(key, 0.0, 1.0) for key in side.totals])
        shares.append(own[every > 0] / every[every > 0])
    if min(one.size for one in shares) < 2:
        return False
    found = difference(shares[0], shares[1])
    return found.value > 0 and found.p < CERTAIN
