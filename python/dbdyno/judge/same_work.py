"""Database time for the same work: what the statements that ran in both periods cost in the second.

Each statement's mean time is taken in both periods and weighted by its calls in the first (an index of Laspeyres). So
more calls, other statements and another mix change nothing here: only what a call of the same statement takes does.

The interval comes from the sub-intervals: each one's influence on the logarithm of the index is a pseudo-value (the
infinitesimal jackknife), and the pseudo-values of the two periods are compared as `stats.two_stretches` does, which
allows for neighbours in time that resemble each other. A statement with few calls says nothing of its spread, so it is
left out; how much of the first period's statement time the index covers is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dbdyno.snapshot.causes.change import Change, Key
from dbdyno.snapshot.renumbered import fingerprints, renumbered
from dbdyno.snapshot.statement_costs import StatementCosts, Total, statement_costs
from dbdyno.stats.two_stretches import difference

CALLS_LEAST, SLOTS_LEAST = 5.0, 3
"""Calls in each period, and sub-intervals with any, that a statement needs to be part of the index."""
Pairs = Mapping[str, tuple[Total, Total]]


@dataclass(frozen=True, slots=True)
class SameWork:
    """Second period against the first: `ratio` of database time for the same work with its 95 % interval and p.

    `covered`: the share of the first period's statement time that the index covers. `counts`: sub-intervals of the
    periods. `gains`: milliseconds a second that each statement adds at the first period's calls.
    """

    ratio: float
    low: float
    high: float
    p: float
    covered: float
    counts: tuple[int, int]
    gains: Mapping[Key, float]


def same_work(change: Change, *, hourly: bool = False) -> SameWork | None:
    """Return the index of the second period against the first.

    None where statements were not counted in both, or no statement ran often enough in both.
    """
    old, new = (statement_costs(change, one, hourly=hourly) for one in (change.before, change.after))
    if old is None or new is None or min(old.slots, new.slots) < 2:
        return None
    names = renumbered(old.totals, new.totals, fingerprints(change.before, change.after))
    judged = {names.get(str(key), str(key)) for key in change.statements}
    a, b = (_joined(side.totals, names) for side in (old, new))
    both = {key: (a[key], b[key]) for key in sorted(a.keys() & b.keys() & judged) if _often(a[key]) and _often(b[key])}
    spent, every = (sum(one.ms for one in some) for some in ((pair[0] for pair in both.values()), _of(a, judged)))
    if spent <= 0:
        return None
    return _index(old, new, both, names, spent / every)


def _of(totals: Mapping[str, Total], judged: Iterable[str]) -> Iterable[Total]:
    return (totals[key] for key in judged if key in totals)


def _index(old: StatementCosts, new: StatementCosts, both: Pairs, names: Mapping[str, str], covered: float) -> SameWork:
    """The index of statements that ran in both: expected time at the second period's means, over the time spent."""
    expected = sum(a.calls * b.mean_ms for a, b in both.values())
    spent = sum(a.ms for a, _ in both.values())
    # The influence of a sub-interval on log(expected / spent) is linear in the calls and the time of each statement.
    first = {key: (-1 / spent, b.mean_ms / expected) for key, (_, b) in both.items()}
    scale = {key: a.calls / b.calls / expected for key, (a, b) in both.items()}
    second = {key: (scale[key], -scale[key] * b.mean_ms) for key, (_, b) in both.items()}
    e_a, e_b = old.weighed(_spread(first, names)), new.weighed(_spread(second, names))
    log = math.log(expected / spent)
    found = difference(-e_a * len(e_a), log + e_b * len(e_b))
    gains = {_key(key): (a.calls * b.mean_ms - a.ms) / old.seconds for key, (a, b) in both.items()}
    counts = len(e_a), len(e_b)
    return SameWork(expected / spent, math.exp(found.low), math.exp(found.high), found.p, covered, counts, gains)


def _spread(weights: Mapping[str, tuple[float, float]], names: Mapping[str, str]) -> list[tuple[str, float, float]]:
    """The weights by every identifier under which a statement was counted."""
    others: dict[str, list[str]] = {}
    for name, stands_for in names.items():
        others.setdefault(stands_for, []).append(name)
    return [(name, *pair) for key, pair in weights.items() for name in (key, *others.get(key, ()))]


def _joined(totals: Mapping[str, Total], names: Mapping[str, str]) -> dict[str, Total]:
    """Totals of statements that count under several identifiers, added up under one."""
    found: dict[str, Total] = {}
    for name, one in totals.items():
        key = names.get(name, name)
        had = found.get(key)
        found[key] = one if had is None else Total(had.calls + one.calls, had.ms + one.ms, max(had.slots, one.slots))
    return found


def _often(total: Total) -> bool:
    return total.calls >= CALLS_LEAST and total.slots >= SLOTS_LEAST


def _key(name: str) -> Key:
    return int(name) if name.removeprefix("-").isdigit() else name
