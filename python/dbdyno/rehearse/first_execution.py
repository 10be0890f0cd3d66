"""First executions in new server processes, reported if their ratio differs from that of later ones.

A block begins with a new server process on both sides, whose caches of catalog and plans are empty. Pages stay in
shared buffers and in the operating system's cache, so this is not the first execution after a restart of the machine.
If blocks of several statements share processes, only the first statement has a first execution. It is reported if the
ratio of the sides differs from that of later executions: their 95 % intervals do not overlap, and the ratios differ by
more than the threshold.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from dbdyno.rehearse.decision import Decision, interval
from dbdyno.rehearse.rehearsed_statement import LEAST_BLOCKS


@dataclass(frozen=True, slots=True)
class FirstExecution:
    """Mean times of first executions on both sides [ns], and their ratio with its 95 % interval."""

    old_ns: float
    new_ns: float
    ratio: float
    low: float
    high: float


def first_execution(decision: Decision, threshold: float) -> FirstExecution | None:
    """Return the figures of a statement's first executions; None unless their ratio differs from that of later ones."""
    old, new = decision.item.old_first_ns, decision.item.new_first_ns
    if not decision.is_timed or len(old) < LEAST_BLOCKS:
        return None
    ratio, low, high = interval(old, new)
    overlap = low <= decision.high and decision.low <= high
    if overlap or abs(math.log(ratio / decision.ratio)) <= math.log1p(threshold):
        return None
    return FirstExecution(statistics.fmean(old), statistics.fmean(new), ratio, low, high)
