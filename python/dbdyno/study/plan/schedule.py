"""Order of the arms: randomised blocks, generated from a seed.

The functions have no side effects: they neither wait nor connect. If the arms can be switched as fast as a statement
runs, they alternate in short slices: a block is a row of quads, each of which is a random order of the arms followed by
its mirror image (ABBA for two arms), so that linear drift within a quad affects all arms alike. If a switch requires a
reload or a restart, a block is one turn of every arm. The order is random, and the next block has its mirror image, so
that on average each arm is first equally often.

A block's order is computed when it is needed, from the seed and the block's number. A plan of 100,000 blocks can
therefore be shown at no cost, and the order does not depend on earlier blocks.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

from dbdyno.study.plan.plan import Plan, Schedule

SECOND = 1_000_000_000
MS = 1_000_000


@dataclass(frozen=True)
class Turn:
    """One stretch of one arm; `counts` is False while it settles after a switch."""

    arm: int
    slice: int
    length_ns: int | None
    transactions: int | None
    counts: bool = True
    watched: bool = True


@dataclass(frozen=True)
class Timing:
    """How the arms take turns, with the actual length of each part.

    `in_order` means that the order of arms does not matter, so they keep the order of the plan.
    """

    switch: str
    slice_ns: int
    turn_ns: int | None
    turn_transactions: int | None
    settle_ns: int
    in_order: bool = False

    @property
    def in_slices(self) -> bool:
        """Return True if arms alternate in slices within a block."""
        return self.switch == "slices"


@dataclass(frozen=True)
class PlannedBlock:
    """One block before it is run.

    Attributes:
        index: Position among all blocks.
        kind: 'warmup', 'overhead' or 'measure'.
        number: Position among the blocks of its kind.
        arms: Number of arms.
        how: Timing of the turns.
        seed: Seed of the order.
        given: Turns to use instead; None to generate them from the seed.
        among: Indexes of the arms that take part; None for all arms.
    """

    index: int
    kind: str
    number: int
    arms: int
    how: Timing
    seed: int
    given: list[Turn] | None = None
    among: tuple[int, ...] | None = None

    @property
    def turns(self) -> list[Turn]:
        """Return the turns in their order.

        They are generated again at each call, with the same result. If `given` is set, it is returned instead.
        """
        if self.given is not None:
            return self.given
        if self.kind == "overhead":
            return _observation_turns(self.how, self._dice(self.number))
        arms = list(range(self.arms) if self.among is None else self.among)
        if self.how.in_order:
            return _turns(arms, self.how)
        if self.how.in_slices:
            return _slice_turns(arms, self.how, self._dice(self.number))
        # Neighbouring blocks are mirror images of each other.
        order = self._dice(self.number // 2).sample(arms, len(arms))
        return _turns(order[::-1] if self.number % 2 else order, self.how)

    def _dice(self, number: int) -> random.Random:
        return random.Random(f"dbdyno schedule {self.seed} {self.kind} {number}")


GROWN_MOST_NS = 10 * SECOND
"""Largest length to which slices and turns grow automatically [ns]; a plan can set a larger one."""
SLICED_TURN_NS = SECOND
"""Time of each arm in a block of slices if the plan does not set a turn [ns]."""
_TURN_NS = {"slices": SLICED_TURN_NS, "turns": 2 * SECOND, "reload": 5 * SECOND, "restart": 15 * SECOND}
_SETTLE_NS = {"slices": 0, "turns": SECOND // 5, "reload": SECOND, "restart": 3 * SECOND}


def timing(schedule: Schedule, switch: str) -> Timing:
    """Return the timing of turns for a kind of switch between arms ('slices', 'turns', 'reload' or 'restart')."""
    turn = schedule.turn_ns or _TURN_NS[switch]
    if schedule.turn_transactions is not None:
        return Timing(
            "turns" if switch == "slices" else switch,
            schedule.slice_ns,
            None,
            schedule.turn_transactions,
            schedule.settle_ns or 0,
        )
    settle = schedule.settle_ns if schedule.settle_ns is not None else _SETTLE_NS[switch]
    return Timing(switch, min(schedule.slice_ns, turn), turn, None, settle)


def grow_timing(timing: Timing, needed_ns: float) -> Timing:
    """Return the timing with slices (or turns) of at least `needed_ns`, up to the limit of automatic growth.

    A turn whose length is a number of transactions is unchanged.
    """
    wanted = min(math.ceil(needed_ns / MS) * MS, GROWN_MOST_NS)
    if timing.turn_ns is None:
        return timing
    if not timing.in_slices:
        return replace(timing, turn_ns=max(timing.turn_ns, wanted))
    length = max(timing.slice_ns, wanted)
    return replace(timing, slice_ns=length, turn_ns=max(timing.turn_ns, 2 * length))


def turns_duration_s(turns: list[Turn], operation_ns: list[float], sessions: list[int]) -> float:
    """Return the duration of turns [s] if a transaction of each arm takes `operation_ns`.

    No transaction starts after the length of a turn, and the turn lasts until the last transaction ends. If s sessions
    are at random positions in their transactions, the last one to end needs s / (s + 1) of a transaction on average.
    """
    whole = 0.0
    for turn in turns:
        one, s = operation_ns[turn.arm], sessions[turn.arm]
        if turn.length_ns is not None:
            whole += max(one, turn.length_ns + one * s / (s + 1))
        elif turn.transactions is not None:
            whole += one * math.ceil(turn.transactions / s)
    return whole / 1e9


def blocks(plan: Plan, timing: Timing, seed: int) -> list[PlannedBlock]:
    """Return all blocks of a run in order: warm-up, then those that measure the cost of observation, then the rest.

    The same plan, timing and seed give the same order.
    """
    watching = plan.watch.activity_hz > 0 or plan.watch.counters
    kinds = {
        "warmup": plan.schedule.warmup_blocks,
        "overhead": plan.watch.overhead_blocks if watching else 0,
        "measure": plan.schedule.blocks,
    }
    places = [(kind, number) for kind, count in kinds.items() for number in range(count)]
    return [PlannedBlock(at, kind, number, len(plan.arms), timing, seed) for at, (kind, number) in enumerate(places)]


def _slice_turns(arms: list[int], timing: Timing, dice: random.Random) -> list[Turn]:
    quads = max(1, round((timing.turn_ns or SECOND) / (2 * timing.slice_ns)))
    order: list[int] = []
    for _ in range(quads):
        half = dice.sample(arms, len(arms))
        order += half + half[::-1]
    return [Turn(arm, at, timing.slice_ns, None) for at, arm in enumerate(order)]


def _turns(order: list[int], timing: Timing) -> list[Turn]:
    turns: list[Turn] = []
    for arm in order:
        if timing.settle_ns:
            turns.append(Turn(arm, len(turns), timing.settle_ns, None, counts=False))
        turns.append(Turn(arm, len(turns), timing.turn_ns, timing.turn_transactions))
    return turns


def _observation_turns(timing: Timing, dice: random.Random) -> list[Turn]:
    """Return turns of the base arm with and without observation, in ABBA quads.

    There are four quads of quarter-second slices, or fewer quads of longer slices.
    """
    length = max(SECOND // 4, timing.slice_ns if timing.in_slices else 0)
    order: list[bool] = []
    for _ in range(max(1, SECOND // length)):
        half = dice.sample([True, False], 2)
        order += half + half[::-1]
    return [Turn(0, at, length, None, watched=watched) for at, watched in enumerate(order)]
