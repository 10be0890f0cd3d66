"""Blocks: all sets of values of a statement, executed alternately on both sides, in new server processes.

A turn of a read-only statement is one pipeline: the server executes it without waiting for the client.

A server process runs either beside its client or on another processor for its whole life, and for a short statement the
difference between the two can exceed the threshold. With new processes in each block, it is a matter of chance which
one occurs. If there is too little time for that, the blocks of several statements share a pair of processes.
"""

from __future__ import annotations

import math
import random
import time
from itertools import count

from dbdyno.rehearse.rehearsed_statement import CUSTOM_PLANS, RehearsedStatement
from dbdyno.rehearse.side import ExecutionError, Side
from dbdyno.rehearse.statement import Parameters

TURNS_LEAST, TURNS_MOST, REPEATS_MOST = 3, 40, 40
_LONGER = 3
"""A block may take this multiple of its planned time to reach the minimum number of turns."""
_TURN_NS = 1_000_000
"""Minimum time of a turn of one side [ns]; all sets of values are repeated until it has passed."""
_WARMED_NS = 20_000_000
"""A statement counts as quick if all its sets of values together take at most this time [ns]."""
_numbers = count()


def new_processes(old: Side, new: Side) -> int:
    """End both sides' server processes, so that the next block starts new ones; return the number of the new pair."""
    for side in (old, new):
        side.close()
    return next(_numbers)


def run_block(
    item: RehearsedStatement, old: Side, new: Side, dice: random.Random, processes: int, *, is_first: bool
) -> None:
    """Execute all sets of values on both sides alternately; a block's time is the lower quartile of its turns.

    Args:
        item: The statement; its times are added to it.
        old: The old side.
        new: The new side.
        dice: Random generator for the order of the sides.
        processes: Number of the pair of server processes.
        is_first: True if these processes have executed no statement yet.

    A statement that failed before is not executed again.
    """
    if item.reason:
        return
    places = [old, new]
    dice.shuffle(places)
    try:
        with old.transaction(item.statement), new.transaction(item.statement):
            begun = {side.name: _warm_up(item, side, is_first=is_first) for side in places}
            spent = _block_times(item, places)
    except ExecutionError as error:
        item.reason = f"it failed during its timing: {error}"
        return
    if is_first:
        item.old_first_ns.append(begun[old.name])
        item.new_first_ns.append(begun[new.name])
    item.old_ns.append(spent[old.name] / len(item.timed_sets))
    item.new_ns.append(spent[new.name] / len(item.timed_sets))
    item.processes.append(processes)


def is_quick(item: RehearsedStatement) -> bool:
    """Return True if there is time to execute all sets of values once more as a warm-up."""
    return sum(trial.elapsed_ns for trial in item.trials) < _WARMED_NS


def _warm_up(item: RehearsedStatement, side: Side, *, is_first: bool) -> float:
    """Execute every set of values if that is quick, use up custom plans, and return the first execution's time [ns].

    The first execution is timed only in new server processes. For a slow statement, the first turn is the warm-up.
    """
    timed = item.timed_sets
    first_ns = side.execute(timed[0], undo=item.undo) if is_first else 0
    is_prepared = timed[0].is_prepared
    if not is_quick(item):
        if is_prepared:
            side.use_up_custom_plans([timed[at % len(timed)] for at in range(CUSTOM_PLANS)])
        return float(first_ns)
    count = max(len(timed), CUSTOM_PLANS if is_prepared else 0)
    rest = [timed[at % len(timed)] for at in range(int(is_first), count)]
    if rest:
        item.round_ns = min(item.round_ns, _execute(item, side, rest) * len(timed) / len(rest))
    return float(first_ns)


def _execute(item: RehearsedStatement, side: Side, executions: list[Parameters]) -> float:
    """Execute sets of values, in one pipeline unless each must be undone, and return their time [ns]."""
    if item.undo:
        return float(sum(side.execute(parameters, undo=True) for parameters in executions))
    return float(side.execute_together(executions))


def _block_times(item: RehearsedStatement, places: list[Side]) -> dict[str, float]:
    """Return, for each side, the lower quartile over the block's turns of the time of all sets of values [ns].

    A turn lasts a millisecond at least, because the first execution after a change of sides is slow.
    """
    executions = item.timed_sets
    repeats = max(1, min(REPEATS_MOST, math.ceil(_TURN_NS / item.round_ns)))
    turn_ns = 2 * repeats * item.round_ns
    least = max(1, min(TURNS_LEAST, int(_LONGER * item.block_ns / turn_ns)))
    turns = max(least, min(TURNS_MOST, round(item.block_ns / turn_ns)))
    found: dict[str, list[float]] = {side.name: [] for side in places}
    end_ns = time.perf_counter_ns() + item.block_ns
    for number in range(turns):
        if number >= least and time.perf_counter_ns() > end_ns:
            break
        for side in places:
            found[side.name].append(_execute(item, side, executions * repeats) / repeats)
        places.reverse()  # Neither side is always the second one.
    item.round_ns = min(item.round_ns, *(min(times) for times in found.values()))
    return {name: _quartile(times) for name, times in found.items()}


def _quartile(times: list[float]) -> float:
    """Return the lower quartile, because other programs can only make turns longer."""
    times.sort()
    place = (len(times) - 1) / 4
    low = int(place)
    return times[low] + (place - low) * (times[min(low + 1, len(times) - 1)] - times[low])
