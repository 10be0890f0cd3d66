"""Work that was added between two periods: new statements, and statements whose calls grew out of proportion.

The number of calls of an application's statements follows its load: if the load doubles, all of them double. A
statement that is new, or whose calls grew far more than the calls of others, is work that a release added. A rare
statement may be missing in the first period by chance, so it counts only if at least `EXPECTED` calls were expected
there. Its share of all calls must also differ between the sub-intervals of the two periods by more than chance explains
(p < 0.001).
"""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.snapshot.causes.change import LEAST_MS, Change, Key, Pair
from dbdyno.snapshot.reading.statement_costs import StatementCosts

EXPECTED = 10.0
"""A statement without calls in a period counts as new or gone only if at least this many calls were expected there."""
OUT_OF_PROPORTION, CERTAIN = 1.5, 0.001
"""Calls are out of proportion if they grew by at least this factor more than those of others, with p below CERTAIN."""
MATERIAL = 0.01
"""Added work below this share of the first period's database time is not reported."""


@dataclass(frozen=True, slots=True)
class AddedWork:
    """Work that was added, minus work that ended.

    Attributes:
        ms: Statement time of that work [ms per second].
        statement: The statement with most of the added work.
        is_new: True if the statement was not called before.
        usual: Factor by which the calls of the other statements grew.
        share: Share of the statement in all added work.
    """

    ms: float
    statement: Pair
    is_new: bool
    usual: float
    share: float


def added_work(change: Change, costs: tuple[StatementCosts, StatementCosts]) -> AddedWork | None:
    """Return the work that was added, minus what new statements replaced; None if it is immaterial or uncertain."""
    usual = usual_growth(change)
    parts = {key: _extra(change, one, usual) for key, one in change.statements.items()}
    more = {key: ms for key, ms in parts.items() if ms > 0}
    gone = sum(-ms for ms in parts.values() if ms < 0)
    whole = sum(more.values())
    net = whole - gone
    if not more or net < max(MATERIAL * change.spent_ms[0], LEAST_MS) or change.growth_ms <= 0:
        return None
    first = max(more, key=lambda key: more[key])
    if not _certain(first, costs):
        return None
    pair = change.statements[first]
    return AddedWork(net, pair, not pair.before.get("calls"), usual, more[first] / whole)


def usual_growth(change: Change) -> float:
    """Return the factor by which calls of statements in both periods grew: the median, weighted by their time."""
    both = [one for one in change.statements.values() if one.before.get("calls") and one.after.get("calls")]
    ratios = sorted((one.after["calls"] / one.before["calls"], one.before.get("ms", 0.0)) for one in both)
    half, passed = sum(weight for _, weight in ratios) / 2, 0.0
    for ratio, weight in ratios:
        passed += weight
        if passed >= half:
            return ratio
    return 1.0


def _extra(change: Change, pair: Pair, usual: float) -> float:
    """Return a statement's time beyond what the load explains [ms per second]; negative if its calls ended."""
    lengths = change.before.seconds, change.after.seconds
    old, new = (
        side.get("calls", 0.0) * length for side, length in zip((pair.before, pair.after), lengths, strict=True)
    )
    expected_old, expected_new = (new / lengths[1] * lengths[0], old / lengths[0] * lengths[1] * usual)
    if not old:
        return pair.after.get("ms", 0.0) if expected_old >= EXPECTED else 0.0
    if not new:
        return -pair.before.get("ms", 0.0) if expected_new >= EXPECTED else 0.0
    if new < OUT_OF_PROPORTION * expected_new:
        return 0.0
    return (new - expected_new) / lengths[1] * pair.per_call("ms")[0]


def _certain(statement: Key, costs: tuple[StatementCosts, StatementCosts]) -> bool:
    """Return True if a statement's share of all calls grew by more than chance explains, tested over sub-intervals."""
    from dbdyno.stats.two_stretches import difference

    shares = []
    for side in costs:
        own = side.weighted_sums("ms", [(str(statement), 0.0, 1.0)])
        every = side.weighted_sums("ms", [(key, 0.0, 1.0) for key in side.totals])
        shares.append(own[every > 0] / every[every > 0])
    if min(one.size for one in shares) < 2:
        return False
    found = difference(shares[0], shares[1])
    return found.value > 0 and found.p < CERTAIN
