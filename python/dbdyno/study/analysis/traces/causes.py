"""Causes of the difference in time between two sets of traces; the effects of the causes add up to the difference.

Every part of the response time (`account`) is assigned to the cause that explains it, in this order:

0. Waits for locks in a recording go to what their holders did during most of them (`trace.holders`), if that itself
   takes longer: an event, or work.
1. Round trips, commits and reads are divided: there are more of them, or each takes longer.
2. Hard parses, with the recursive calls below them; waits for locks.
3. A statement that only one set has; one that is executed more often; one whose plan, rows, fetch size or buffer gets
   per execution changed: its time then follows from that.
4. The rest did the same work: its CPU, its reads or its other waits took longer by themselves.

The division of `n` waits of mean `m` is symmetric: (n2 - n1)(m1 + m2) / 2 for the number, and (m2 - m1)(n1 + n2) / 2
for the length. If one grows and the other falls, these means are replaced by the smaller m and the smaller n: otherwise
a statement that is 1,000 times as slow and is therefore executed less often would have two effects far beyond the
difference, which cancel each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dbdyno.study.analysis.contract.parts import Contribution
from dbdyno.study.analysis.traces.account import CPU, ROUND_TRIP, UNACCOUNTED, Account, Part
from dbdyno.study.analysis.traces.statement_changes import Basis, Change, basis_of, changes, differ
from dbdyno.study.analysis.traces.statement_matching import MatchedStatement
from dbdyno.study.analysis.traces.turns import COMMIT, HARD
from dbdyno.trace.holders import WORK, LockWaits

Key = tuple[str, str]
Locks = tuple[Mapping[str, LockWaits], Mapping[str, LockWaits]]
"""By event, what lock holders did during the waits for locks, for each of the two sets."""
READS = "physical reads"
MOSTLY = 0.5
"""Share of the wait time for a lock above which the activity of its holders is named as the cause."""
LONGER, MUCH_LONGER = 1.3, 3.0
"""Growth above which the holders' own activity is said to take longer.

The larger limit applies if only one set has many such waits, because they may have another reason.
"""
MANY_RATIO = 10.0
"""Ratio of the numbers of waits for a lock in the two sets above which only one set is said to have many."""


@dataclass
class Cause:
    """One cause of the difference between two sets.

    Attributes:
        code: Kind of the cause.
        about: The event or statement concerned.
        effect_ns: Effect on the difference of the response times [ns], including the effect of `held_ns`.
        counts: Counts of the two sets.
        times_ns: Times of the two sets [ns].
        held_ns: Time that other sessions waited for locks because of this activity, in the two sets [ns].
    """

    code: str
    about: str
    effect_ns: float = 0.0
    counts: list[float] = field(default_factory=lambda: [0.0, 0.0])
    times_ns: list[float] = field(default_factory=lambda: [0.0, 0.0])
    held_ns: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def add(self, effect: float, counts: tuple[float, float], times: tuple[float, float]) -> None:
        """Add a part, or a share of a part, to the cause."""
        self.effect_ns += effect
        for at in (0, 1):
            self.counts[at] += counts[at]
            self.times_ns[at] += times[at]


@dataclass(frozen=True)
class Explanation:
    """Explanation of the difference between two sets: the scale, what changed, and the causes, largest first."""

    accounts: tuple[Account, Account]
    basis: Basis
    scales: tuple[float, float]
    changes: dict[str, Change]
    causes: tuple[Cause, ...]
    locks: Locks = ({}, {})

    @property
    def response_ns(self) -> tuple[float, float]:
        """Return the response times on the scale of the comparison [ns]."""
        return self._scaled_pair("response_ns")

    @property
    def database_ns(self) -> tuple[float, float]:
        """Return the database times on the scale of the comparison [ns]."""
        return self._scaled_pair("database_ns")

    def _scaled_pair(self, name: str) -> tuple[float, float]:
        found = [getattr(account, name) * scale for account, scale in zip(self.accounts, self.scales, strict=True)]
        return found[0], found[1]


def explain(
    accounts: tuple[Account, Account], known: dict[str, MatchedStatement], locks: Locks = ({}, {})
) -> Explanation:
    """Return the explanation of the difference between two accounts, with its causes."""
    basis = basis_of(*accounts)
    units = {"run": (1, 1), "execution": [a.executions for a in accounts], "transaction": [a.commits for a in accounts]}
    scales = (1.0 / units[basis][0], 1.0 / units[basis][1])
    changed = changes(accounts, known, scales)
    found: dict[Key, Cause] = {}
    whose: dict[str, dict[Key, float]] = {}
    """For each resource, the causes to which its time went."""
    held = _Held(locks, accounts, scales)
    for pair in _pairs(accounts):
        about = next(part for part in pair if part)
        counts = tuple(part.count * scale if part else 0.0 for part, scale in zip(pair, scales, strict=True))
        times = held.taken(about, tuple(p.time_ns * scale if p else 0.0 for p, scale in zip(pair, scales, strict=True)))
        seen = ((counts[0], counts[1]), (times[0], times[1]))
        for (code, of), effect in _split(about, changed.get(about.owner), *seen):
            found.setdefault((code, of), Cause(code, of)).add(effect, *seen)
            of_part = whose.setdefault(about.what, {})
            of_part[code, of] = of_part.get((code, of), 0.0) + effect
    for what, (before, after) in held.times.items():
        ways = whose.get(what, {})
        code, of = max(ways, key=lambda key: abs(ways[key]), default=("wait", what))
        cause = found.setdefault((code, of), Cause(code, of))
        cause.effect_ns += after - before
        cause.held_ns = [cause.held_ns[0] + before, cause.held_ns[1] + after]
    ordered = sorted(found.values(), key=lambda cause: -abs(cause.effect_ns))
    return Explanation(accounts, basis, scales, changed, tuple(ordered), locks)


class _Held:
    """Attribution of time in waits for locks to the activity of the lock holders, with the attributed times."""

    def __init__(self, locks: Locks, accounts: tuple[Account, Account], scales: tuple[float, float]) -> None:
        self.shares: dict[str, list[dict[str, float]]] = {}
        self.times: dict[str, tuple[float, float]] = {}
        means = _means(accounts, scales)
        for event in {**locks[0], **locks[1]}:
            sides = [side.get(event) for side in locks]
            times = [one.time_ns * scale if one else 0.0 for one, scale in zip(sides, scales, strict=True)]
            counts = [one.count * scale if one else 0.0 for one, scale in zip(sides, scales, strict=True)]
            at = int(times[1] > times[0])
            shares = [one.shares() if one else {} for one in sides]
            name, share = next(iter(shares[at].items()), ("", 0.0))
            much = LONGER if max(counts) <= MANY_RATIO * min(counts) else MUCH_LONGER
            before = means[1 - at].get(_own(name), 0.0)
            if share >= MOSTLY and means[at].get(_own(name), 0.0) >= much * before:
                self.shares[event] = [{_own(name): side[name]} if name in side else {} for side in shares]

    def taken(self, part: Part, times: tuple[float, ...]) -> tuple[float, float]:
        """Add the share of a wait that the holders' activity explains to `self.times`, and return the rest."""
        shares = self.shares.get(part.what, [{}, {}])
        left = [times[0], times[1]]
        for name in {**shares[0], **shares[1]}:
            moved = [time * side.get(name, 0.0) for time, side in zip(times, shares, strict=True)]
            before, after = self.times.get(name, (0.0, 0.0))
            self.times[name] = before + moved[0], after + moved[1]
            left = [time - gone for time, gone in zip(left, moved, strict=True)]
        return left[0], left[1]


def _own(name: str) -> str:
    """Return the name under which accounts list what a holder did: an event, or CPU."""
    return CPU if name == WORK else name


def _means(accounts: tuple[Account, Account], scales: tuple[float, float]) -> list[dict[str, float]]:
    """Return the mean time of a wait for each event, by set; for CPU, the total time."""
    found = []
    for account, scale in zip(accounts, scales, strict=True):
        sums: dict[str, tuple[int, int]] = {}
        for part in account.parts:
            count, time_ns = sums.get(part.what, (0, 0))
            sums[part.what] = count + part.count, time_ns + part.time_ns
        found.append({what: ns / count if count else ns * scale for what, (count, ns) in sums.items()})
    return found


def _pairs(accounts: tuple[Account, Account]) -> list[list[Part | None]]:
    """Return the parts of both sets, paired by owner and resource."""
    sides: list[dict[Key, Part]] = [{(p.owner, p.what): p for p in account.parts} for account in accounts]
    return [[side.get(key) for side in sides] for key in dict.fromkeys([*sides[0], *sides[1]])]


def _split(
    part: Part, change: Change | None, counts: tuple[float, float], times: tuple[float, float]
) -> Iterator[tuple[Key, float]]:
    """Yield the causes of one part with the effect of each; the effects add up to its difference."""
    number, length = number_and_length_effects(counts, times)
    if part.what == ROUND_TRIP:
        yield ("length", ROUND_TRIP), length
        yield _whose_round_trips(part.owner, change), number
    elif part.owner == HARD:
        yield ("hard parses", ""), number + length
    elif part.kind == "commit":
        yield ("commits", ""), number
        yield ("length", part.what), length
    elif part.kind == "lock":
        yield ("wait", part.what), number + length
    elif part.owner == COMMIT:
        yield ("commits", ""), number + length
    elif change is None or not change.what:
        yield from _same_work(part, counts, times)
    else:
        yield from _other_work(part, change, counts, times)


def _whose_round_trips(owner: str, change: Change | None) -> Key:
    if owner in (COMMIT, HARD):
        return owner, ""
    what = change.what if change else ()
    if change is not None and "rows" in what and not differ(*_rows_a_fetch(change)):
        return "rows", owner
    for name in ("new", "gone", "executions"):
        if name in what:
            return name, owner
    return "round trips", ""


def _rows_a_fetch(change: Change) -> tuple[float, float]:
    found = [side.rows / side.fetches if side and side.fetches else 0.0 for side in change.sides]
    return found[0], found[1]


def _other_work(
    part: Part, change: Change, counts: tuple[float, float], times: tuple[float, float]
) -> Iterator[tuple[Key, float]]:
    """Yield the causes for a statement that did different work: number of executions, then longer executions."""
    for name in ("new", "gone"):
        if name in change.what:
            yield (name, part.owner), times[1] - times[0]
            return
    number = 0.0
    if "executions" in change.what:
        number, _ = number_and_length_effects(change.executions(), times)
        yield ("executions", part.owner), number
    left = times[1] - times[0] - number
    if change.reason == "fetches":
        yield ("round trips", ""), left
    elif change.reason:
        yield (change.reason, part.owner), left
    elif number:
        share = left / (times[1] - times[0]) if times[1] != times[0] else 0.0
        for key, effect in _same_work(part, counts, times):
            yield key, effect * share
    else:
        yield from _same_work(part, counts, times)


def _same_work(part: Part, counts: tuple[float, float], times: tuple[float, float]) -> Iterator[tuple[Key, float]]:
    """Yield the causes for a statement that did the same work: the resource that took longer."""
    number, length = number_and_length_effects(counts, times)
    if part.kind == "data read":
        yield ("reads", ""), number
        yield ("length", READS), length
    elif part.what == CPU:
        yield ("CPU", ""), number + length
    elif part.what == UNACCOUNTED:
        yield ("unaccounted", ""), number + length
    else:
        yield ("wait", part.what), number + length


def number_and_length_effects(counts: tuple[float, float], times: tuple[float, float]) -> tuple[float, float]:
    """Return the effect of more waits and the effect of longer waits, which add up to a difference of times."""
    difference = times[1] - times[0]
    if not counts[0] or not counts[1]:
        return difference, 0.0
    means = [time / count for time, count in zip(times, counts, strict=True)]
    against = (counts[1] - counts[0]) * (means[1] - means[0]) < 0
    number = (counts[1] - counts[0]) * (min(means) if against else (means[0] + means[1]) / 2)
    return number, difference - number


def contributions(explained: Explanation) -> list[Contribution]:
    """Return the response time of both sets by resource: CPU, each event, round trips, the rest."""
    found: dict[str, Contribution] = {}
    for at, (account, scale) in enumerate(zip(explained.accounts, explained.scales, strict=True)):
        for part in account.parts:
            row = found.setdefault(
                part.what,
                {
                    "name": part.what,
                    "class": part.kind,
                    "base_ns": 0.0,
                    "value_ns": 0.0,
                    "counts": [0, 0],
                    "difference_ns": 0.0,
                },
            )
            if at:
                row["value_ns"] += part.time_ns * scale
            else:
                row["base_ns"] += part.time_ns * scale
            row["counts"][at] += part.count
    for row in found.values():
        row["difference_ns"] = row["value_ns"] - row["base_ns"]
    return sorted(found.values(), key=lambda row: -abs(row["difference_ns"]))
