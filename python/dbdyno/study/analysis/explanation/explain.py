"""Causes of a difference between two arms, or of the time of one: the largest first, with intervals over blocks.

The mean time of a transaction is divided into events (`parts`); events that the same reason explains form one cause
(`reasons`). The amount of a cause is its time in one arm minus its time in the other. Its interval comes from the
jackknife over blocks: if the arms ran in the same run, each step leaves out a block of both arms; if they are from two
runs, it leaves out a block of one arm at a time. No cause is named if a gate withheld the verdict, if sessions were
sampled too rarely, if there are too few blocks, or if the interval of the whole difference contains zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dbdyno.base.explanation import LEAST_SHARE, MOST, CausalExplanation, Cause, unexplained
from dbdyno.study.analysis.explanation.pair import Pair, Reason, Station
from dbdyno.study.analysis.explanation.parts import CPU, QUEUE, READY, Array, Event, Side
from dbdyno.study.analysis.explanation.reasons import kind_of, reasons
from dbdyno.study.analysis.explanation.same_work import compare_work
from dbdyno.study.analysis.explanation.server_counters import ArmCounters

if TYPE_CHECKING:
    from collections.abc import Callable

LOOKS_LEAST = 100
"""Smallest number of times that an arm's sessions must have been sampled before its events are used."""
REST_MOST = 0.05
"""Unexplained share above which causes smaller than `LEAST_SHARE` are named, too."""
SMALL_SHARE = 0.02
"""Minimum share of such a cause."""
CAUSES_MOST = 6
"""Maximum number of causes with such causes."""
BLOCKS_LEAST = 4
"""Smallest number of blocks from which an interval is computed."""
_OWN = {
    "CPU": "CPU of the server's sessions",
    "ready": "time ready to run: waiting for a processor, or for the network to the client",
    "queue": "waiting for a free session: requests arrive faster than they are served",
    "lock": "sessions wait for each other's locks: {}",
    "network": "the server waits for its client ({}): the client's work between two messages, and the network",
    "workers": "sessions wait for their own parallel workers ({}): the waits of the workers are not included",
}
_OF_PROGRAMS = {
    "CPU": "CPU of the programs",
    "ready": "time that a program was not on a processor: it waited for a processor, for files, or for an answer",
}


class Split:
    """Two arms, or a single one, whose time is divided into events, with the standard error of each difference."""

    def __init__(self, base: Side | None, other: Side, *, paired: bool) -> None:
        self.base, self.other, self.paired = base, other, paired
        sides = [side for side in (base, other) if side is not None]
        known = dict.fromkeys(event for side in sides for event in side.events)
        self.events: list[Event] = [*dict.fromkeys((*known, CPU, READY, QUEUE))]
        self.blocks = min(side.blocks for side in sides)

    def amount(self, groups: Sequence[Sequence[int]]) -> tuple[Array, Array]:
        """Return, for each group of events, the difference between the arms [ns] and its standard error."""
        from dbdyno.stats.jackknife import jackknife

        def of(side: Side) -> Callable[[Any], Array]:
            def figure(keep: Any) -> Array:
                times = side.event_times_ns(self.events, keep)
                return np.array([times[list(group)].sum() for group in groups])

            return figure

        if self.base is None:
            return jackknife(of(self.other), self.other.blocks)
        one, two = of(self.base), of(self.other)
        if self.paired:
            return jackknife(lambda keep: two(keep) - one(keep), self.blocks)
        (first, first_error), (second, second_error) = (
            jackknife(one, self.base.blocks),
            jackknife(two, self.other.blocks),
        )
        return second - first, np.sqrt(first_error**2 + second_error**2)


def explain(
    base: Side | None,
    side: Side,
    *,
    level: float,
    arm: int,
    counts: tuple[ArmCounters | None, ArmCounters | None] = (None, None),
    stations: tuple[Mapping[str, Station], Mapping[str, Station]] = ({}, {}),
    paired: bool = True,
    withheld: str = "",
) -> CausalExplanation:
    """Explain why `side` differs from `base`, or, without a base, what `side` spends its time on.

    Args:
        base: The base; None to explain the time of `side` alone.
        side: The arm to explain.
        level: Confidence level of the intervals.
        arm: Index of the arm.
        counts: Server counters of both arms.
        stations: Devices of a model in both arms.
        paired: True if the arms ran side by side in the same blocks.
        withheld: Why there is no verdict; empty if there is one.
    """
    split = Split(base, side, paired=paired)
    what = f"{side.name} against {base.name}" if base is not None else side.name
    every = np.ones(side.blocks, dtype=bool)
    after = side.mean(every)
    before = base.mean(np.ones(base.blocks, dtype=bool)) if base is not None else None
    amount = after - (before or 0.0)
    whole = CausalExplanation(what, "ns", amount, before, after, level=level, blocks=split.blocks, arm=arm)
    if withheld:
        return replace(whole, withheld=withheld)
    pair = _pair(base, side, counts, stations, amount)
    if lack := _lack(split):
        return replace(whole, withheld=lack[0], next=lack[1], notes=_slower_counter_sentences(pair, split.blocks))
    low, high = _interval(*split.amount([range(len(split.events))]), split.blocks, level)
    whole = replace(whole, low=float(low[0]), high=float(high[0]))
    if base is not None and low[0] <= 0 <= high[0]:
        small = "the difference of the mean times is no larger than its own uncertainty"
        return replace(
            whole, withheld=small, next="more blocks", notes=_counter_sentences(base, side, counts, stations, amount)
        )
    found = _causes(split, pair, amount, level)
    left, share = unexplained(amount, found)
    return replace(whole, causes=tuple(found), rest=left, rest_share=share, notes=_notes(split))


def _lack(split: Split) -> tuple[str, str] | None:
    """Return why the evidence is not sufficient to name causes, and the next step; None if it is sufficient."""
    for side in (split.base, split.other):
        if side is None:
            continue
        known = side.exact or side.programs  # there are no waits to sample, or all were timed
        if not side.looks and not known:
            return (f"the waits of {side.name} were not sampled", "activity_hz = 10 under [watch] samples them")
        if not known and side.looks < LOOKS_LEAST:
            return (
                f"sessions of {side.name} were sampled about {side.looks:.0f} times: fewer than {LOOKS_LEAST} samples"
                " are not enough",
                "use a longer run, more sessions, or a larger activity_hz under [watch]",
            )
        if not known and not side.samples and not side.cpu_count.sum():
            return (f"neither waits nor CPU of {side.name} were seen, so it is not known where its time went", "")
        if not np.isfinite(side.mean(np.ones(side.blocks, dtype=bool))):
            return (f"no transaction of {side.name} succeeded", "")
    if split.blocks < BLOCKS_LEAST:
        return (f"{split.blocks} blocks are too few for an interval", f"--blocks {2 * BLOCKS_LEAST}")
    return None


def _interval(amount: Array, error: Array, blocks: int, level: float) -> tuple[Array, Array]:
    from dbdyno.stats.jackknife import half_width

    half = half_width(error, blocks, level)
    return amount - half, amount + half


def _pair(
    base: Side | None,
    side: Side,
    counts: tuple[ArmCounters | None, ArmCounters | None],
    stations: tuple[Mapping[str, Station], Mapping[str, Station]],
    amount: float,
) -> Pair | None:
    """Return both arms in the form that the rules need, the slower first; None if there is only one arm."""
    if base is None:
        return None
    sides = (side, base) if amount > 0 else (base, side)
    counted = counts[::-1] if amount > 0 else counts
    both = (counted[0], counted[1]) if counted[0] is not None and counted[1] is not None else None
    cpu, reads, writes = (_per_transaction(sides, name) for name in ("cpu", "reads", "writes"))
    ordered = (stations[1], stations[0]) if amount > 0 else stations
    spills = sides[0].temporary_files_ns > sides[1].temporary_files_ns
    return Pair(sides[0].name, sides[1].name, both, cpu, reads, writes, spills, ordered, abs(amount))


def _counter_sentences(
    base: Side,
    other: Side,
    counts: tuple[ArmCounters | None, ArmCounters | None],
    stations: tuple[Mapping[str, Station], Mapping[str, Station]],
    amount: float,
) -> tuple[str, ...]:
    """Return sentences on counters that differ although it is not certain that the times of the arms differ.

    A reason that would apply with either arm as the slower one is left out.
    """
    pairs = [_pair(base, other, counts, stations, sign * abs(amount)) for sign in (1, -1)]
    first, second = ({one.code: one for one in _open_reasons(reasons(pair))} if pair else {} for pair in pairs)
    words = [one.words for code, one in (first | second).items() if (code in first) != (code in second)]
    return tuple(f"No difference of time is certain, but a counter differs: {one}." for one in words[:MOST])


def _slower_counter_sentences(pair: Pair | None, blocks: int) -> tuple[str, ...]:
    """Return sentences on counters that differ in the slower arm, if its waits show too little to name a cause."""
    known = _open_reasons(reasons(pair)) if pair is not None and blocks >= BLOCKS_LEAST else []
    return tuple(f"Counters differ, but their share of the time is not known: {one.words}." for one in known[:MOST])


def _open_reasons(known: list[tuple[frozenset[str], Reason]]) -> list[Reason]:
    """Return the reasons that explain at least one kind of event that no earlier reason explains."""
    explained: frozenset[str] = frozenset()
    found = []
    for kinds, reason in known:
        if not kinds <= explained:
            found.append(reason)
        explained |= kinds
    return found


def _per_transaction(sides: tuple[Side, Side], name: str) -> tuple[float, float] | None:
    """Return the total `name` per transaction of each arm's processes, as the host measured; None if unknown."""
    if not all(side.cpu_count.sum() for side in sides):
        return None
    one, two = (float(getattr(side, name).sum() / side.cpu_count.sum()) for side in sides)
    return one, two


def _causes(split: Split, pair: Pair | None, amount: float, level: float) -> list[Cause]:
    """Return the causes that are certain and large enough, largest first; the client's time after the server's.

    If they leave more than `REST_MOST` unexplained, smaller ones follow, and ones that work against the difference.
    """
    groups = _groups(split.events, reasons(pair) if pair is not None else [])
    amounts, errors = split.amount([group for _, group in groups])
    lows, highs = _interval(amounts, errors, split.blocks, level)
    shares = amounts / amount
    certain = [at for at in range(len(groups)) if lows[at] > 0 or highs[at] < 0]

    def rank(at: int) -> tuple[bool, float]:
        reason, group = groups[at]
        # On a shared machine the client is faster, too, if the server does less: a consequence, not a cause.
        return reason is None and kind_of(split.events[group[0]]) == "network", -shares[at]

    chosen = sorted((at for at in certain if shares[at] >= LEAST_SHARE), key=rank)[:MOST]
    others = [at for at in certain if at not in chosen and abs(shares[at]) >= SMALL_SHARE]
    for at in sorted(others, key=lambda one: -abs(shares[one])):
        rest = 1 - sum(shares[one] for one in chosen)
        reason, _ = groups[at]
        # A reason says why an arm is slower, so it cannot name what works against the difference.
        if (
            abs(rest) > REST_MOST
            and shares[at] * rest > 0
            and (rest > 0 or reason is None)
            and len(chosen) < CAUSES_MOST
        ):
            chosen.append(at)
    return [
        _cause(split, pair, *groups[at], (float(amounts[at]), float(lows[at]), float(highs[at])), float(shares[at]))
        for at in sorted(chosen, key=rank)
    ]


_TOGETHER = ("lock", "workers")
"""Kinds of events that are combined into one cause if no reason explains them."""


def _groups(events: list[Event], known: list[tuple[frozenset[str], Reason]]) -> list[tuple[Reason | None, list[int]]]:
    """Return events grouped by the first reason that explains their kind, or else one event per group.

    Events of the kinds in `_TOGETHER` form one group if no reason explains them.
    """
    groups: dict[object, tuple[Reason | None, list[int]]] = {}
    for at, event in enumerate(events):
        kind = kind_of(event)
        reason = next((one for kinds, one in known if kind in kinds), None)
        key: object = reason or (kind if kind in _TOGETHER else event)
        groups.setdefault(key, (reason, []))[1].append(at)
    return list(groups.values())


def _cause(
    split: Split,
    pair: Pair | None,
    reason: Reason | None,
    group: list[int],
    amount: tuple[float, float, float],
    share: float,
) -> Cause:
    from dbdyno.study.analysis.explanation.formatting import duration

    whole = [split.other.event_times_ns(split.events, np.ones(split.other.blocks, dtype=bool))]
    if split.base is not None:
        whole.insert(0, split.base.event_times_ns(split.events, np.ones(split.base.blocks, dtype=bool)))
    moved = sorted(group, key=lambda at: -abs(whole[-1][at] - (whole[0][at] if len(whole) > 1 else 0.0)))
    names = [_name(split, at) for at in moved]
    parts = [
        f"{_name(split, at)} {' → '.join(duration(float(side[at])) if side[at] else '0' for side in whole)}"
        for at in moved[:3]
        if any(side[at] > 0 for side in whole)
    ]
    seen = [f"{side.samples:,} samples of {side.name}" for side in (split.base, split.other) if side is not None]
    place = "waits, each timed" if split.other.exact else f"waits, {' and '.join(seen)}"
    if split.other.read:
        place = "waits, read from the server's memory"
    if split.other.programs:
        place = "the kernel's accounting for each program"
    evidence: tuple[str, ...] = (f"a transaction: {'; '.join(parts)} ({place})",)
    if reason is not None:
        return Cause(reason.code, reason.about, reason.words, *amount, share, (*reason.evidence, *evidence))
    kind = kind_of(split.events[moved[0]])
    known = _OWN | _OF_PROGRAMS if split.other.programs else _OWN
    words = known.get(kind, "waits for {} ({})").format(names[0], kind)
    if kind == "CPU" and pair is not None:
        work = compare_work(pair)
        words, evidence = words + work.words, (*evidence, *work.evidence)
    return Cause(_CODES.get(kind, "wait"), names[0], words, *amount, share, evidence)


_CODES = {"CPU": "cpu", "ready": "ready", "queue": "queue", "lock": "lock"}


def _name(split: Split, at: int) -> str:
    """Return the event in words; if a program was off the CPU, it is unknown whether it was ready to run or slept."""
    event = split.events[at]
    return "on no processor" if split.other.programs and event == READY else event[1]


_DEARER = (
    "Waits were timed by watchpoints, because probes, which cost a tenth of that, were refused: `dbdyno doctor` says "
    "how to allow them."
)


_READ = (
    "Waits were read from the server's memory, hundreds to thousands of times a second, which costs the server nothing."
    " Times of waits shorter than the time between two looks are right on average. CPU is what the host counted."
)


def _notes(split: Split) -> tuple[str, ...]:
    from dbdyno.study.analysis.explanation.formatting import duration

    if paid_ns := split.other.probes_ns:
        one = "watchpoint" if split.other.watchpoints else "probe"
        paid = (
            f"Waits are exact, without the cost of their {one}; {one}s took {duration(paid_ns)} of CPU per "
            "transaction (counted, at the cost measured when they were set), equally in all arms."
        )
        return (paid, _DEARER) if split.other.watchpoints else (paid,)
    if split.other.read:
        return (_READ,)
    if split.other.exact or split.other.programs:
        return ()
    return ("Waits are sampled; CPU is what the host counted, if the server runs on this host.",)
