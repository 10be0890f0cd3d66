"""Blocks: all sets of values of a statement on both sides alternately, in server processes that are new.

Where a server process runs, beside its client or on another processor, stays so for its life and costs a short
statement more than the threshold. With new processes it is a matter of chance in each block. Where there is too little
time for that, the blocks of several statements share a pair of processes.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable
from itertools import count

from dbdyno.rehearse.rehearsed import CUSTOM_PLANS, Rehearsed
from dbdyno.rehearse.side import FailedError, Side
from dbdyno.rehearse.statement import Parameters

INNER_MOST = 40
_WARMED_NS = 20_000_000
"""Time of an execution of all sets of values up to which a statement is quick [ns]."""
_numbers = count()


def new_processes(old: Side, new: Side) -> int:
    """End the server processes of both sides, so that the next block begins new ones, and return their number."""
    for side in (old, new):
        side.close()
    return next(_numbers)


def run_block(
    item: Rehearsed, old: Side, new: Side, dice: random.Random, processes: int, *, is_first: bool, keep: bool = True
) -> None:
    """Execute all sets of values on both sides; the first time of each tells how often a block repeats it.

    Args:
        item: The statement; its times are added to it.
        old: The old side.
        new: The new side.
        dice: Order of the sides.
        processes: Number of the pair of server processes.
        is_first: True if these processes have executed no statement yet.
        keep: False for a block that only warms up.

    A statement that failed before is not executed again.
    """
    if item.reason:
        return
    begun: dict[str, float] = {}
    undo = item.undo or old.server is new.server
    places = [old, new]
    dice.shuffle(places)
    try:
        with old.transaction(item.statement), new.transaction(item.statement):
            for side in places:
                times = [side.execute(parameters, undo=undo) for parameters in _warming(item)]
                begun[side.name] = float(times[0])
            spent = _timed(item, places, dice, undo=undo)
    except FailedError as error:
        item.reason = f"it failed while it was timed: {error}"
        return
    if not keep:
        return
    if is_first:
        item.old_first_ns.append(begun[old.name])
        item.new_first_ns.append(begun[new.name])
    item.old_ns.append(spent[old.name] / len(item.timed))
    item.new_ns.append(spent[new.name] / len(item.timed))
    item.processes.append(processes)


def is_quick(item: Rehearsed) -> bool:
    """Return True if there is time to execute a statement's sets of values only to warm up."""
    return sum(trial.elapsed_ns for trial in item.trials) < _WARMED_NS


def _warming(item: Rehearsed) -> Iterable[Parameters]:
    """Return what a process executes first: every set of values if that is quick, and past the custom plans."""
    timed = item.timed
    executions = max(len(timed) if is_quick(item) else 1, CUSTOM_PLANS if timed[0].is_prepared else 0)
    return [timed[at % len(timed)] for at in range(executions)]


def _timed(item: Rehearsed, sides: list[Side], dice: random.Random, *, undo: bool) -> dict[str, float]:
    """Return by side the sum over the sets of values of the median time of an execution [ns]."""
    inner, repeats = item.inner, list[int]()
    spent = {side.name: 0.0 for side in sides}
    for place, parameters in enumerate(item.timed):
        dice.shuffle(sides)
        found: dict[str, list[int]] = {side.name: [] for side in sides}
        for _ in range(inner[place] if inner else 1):
            for side in sides:
                found[side.name].append(side.execute(parameters, undo=undo))
        least = min(min(times) for times in found.values())
        repeats.append(max(1, min(INNER_MOST, round(item.inner_ns / max(least, 1)))))
        for name, times in found.items():
            spent[name] += statistics.median(times)
    item.inner = inner or repeats
    return spent
