"""Validity gates: checks whether the numbers of a run may be compared at all.

Each gate is a pure function of numbers that returns a `Gate`: `ok` is True, False, or None if the numbers do not allow
the check; `text` says what was found; `next` is the next step. The effect of a failure on the verdict follows from the
gate's code (`dbdyno.base.decisions`). The limits are named constants with their reason. Effects of time on a run are
checked in `gates_in_time`, lost transactions and arrivals in `gates_losses`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dbdyno.base.decisions import WITHHOLDING
from dbdyno.stats import least_blocks
from dbdyno.stats.quantiles import VALUES_BEYOND_MIN, is_supported
from dbdyno.stats.wording import duration

#: Relative difference in work per operation between arms up to which their times may be compared.
WORK_TOLERANCE = 0.01
#: Smallest number of transactions per session in a slice. Sessions that finish early wait for the last one, on average
#: half a transaction or more: with 5 transactions in a slice, some sessions are idle for about a tenth of the time, and
#: the slice overruns by about as much.
OPERATIONS_MIN = 5
#: Number of values in the topmost hundredth of the range above the median from which on latencies look cut off. An
#: exponential tail has 0.1 to 0.2 values there and a normal one fewer than 1, for any number of values.
WALL_VALUES = 10


@dataclass(frozen=True, slots=True)
class Gate:
    """Result of one check.

    Attributes:
        name: Name of the check.
        ok: True if the check passed, False if it failed, None if the result is unknown.
        text: What was found.
        next: What to do; empty if nothing.
        code: Code of the rule that decides what a failure does to the verdict.
        arm: The arm concerned; empty if the gate concerns the whole run.
        because: Clause that says why there is no verdict, if that differs from `text`.
    """

    name: str
    ok: bool | None
    text: str
    next: str = ""
    code: str = ""
    arm: str = ""
    because: str = ""

    @property
    def withholds(self) -> bool:
        """Return True if the gate failed and its rule withholds the verdict."""
        return self.ok is False and self.code in WITHHOLDING

    @property
    def reason(self) -> str:
        """Return the reason for withholding the verdict, as a sentence."""
        said = self.because or self.text
        begins_with_name = bool(self.arm) and said.startswith(self.arm)
        return (said if begins_with_name else said[:1].upper() + said[1:]) + "."


def equal_work(what: str, arm: str, value: float, base: str, base_value: float) -> Gate:
    """Check whether an arm did the same work per operation as its base, within 1 %.

    Args:
        what: Name of the work in the plural, such as "rows", "redo bytes" or "statements".
        arm: Name of the arm.
        value: Work per operation of the arm; NaN if unknown.
        base: Name of the base.
        base_value: Work per operation of the base; NaN if unknown.
    """
    name = f"equal {what} per operation"
    if math.isnan(value) or math.isnan(base_value):
        return Gate(name, None, f"{what} per operation are not known for two arms", code="work", arm=arm)
    if abs(value - base_value) <= WORK_TOLERANCE * max(abs(base_value), abs(value)):
        return Gate(name, True, f"{arm} and {base}: {base_value:.4g} {what} per operation", code="work", arm=arm)
    return Gate(
        name,
        False,
        f"{arm} has {value:.4g} {what} per operation, {base} {base_value:.4g}",
        'make the work equal; or, if it is meant to differ, write accept = ["work"] under [verdict]',
        code="work",
        arm=arm,
        because=f"{arm} and {base} do different work: {value:.4g} and {base_value:.4g} {what} per operation",
    )


def enough_operations(arm: str, per_slice: float, stretch: str, *, counted: bool = False, waiting: bool = True) -> Gate:
    """Check whether a slice or turn holds enough transactions per session.

    The minimum is `OPERATIONS_MIN`. One transaction per session is enough in two cases: the slice or turn ends after a
    fixed number of transactions (it does not overrun, and no measured value contains the wait at its end), or it is a
    turn with a single session, so that no session waits at its end.

    Args:
        arm: Name of the arm.
        per_slice: Transactions per session in a slice or turn; NaN if none counts.
        stretch: "slice" or "turn".
        counted: True if it ends after a fixed number of transactions instead of a duration.
        waiting: True if sessions wait for each other at the end of a turn.
    """
    name = f"enough transactions in a {stretch}"
    if math.isnan(per_slice):
        return Gate(name, None, f"{arm} has no {stretch} that counts", code="operations", arm=arm)
    text = f"a {stretch} of {arm} holds {per_slice:.3g} transactions of each session"
    alone = stretch == "turn" and not waiting
    if per_slice >= (1 if counted or alone else OPERATIONS_MIN):
        return Gate(name, True, text, code="operations", arm=arm)
    if counted:
        what = f"{text}: some sessions had no transaction"
        step = "raise turn_transactions to the number of sessions"
        return Gate(name, False, what, step, code="operations", arm=arm)
    longer = "warm-up blocks, which let slices grow, or a longer slice" if stretch == "slice" else "a longer turn"
    return Gate(
        name,
        False,
        f"{text}: sessions wait for each other at its end, and the run takes longer than planned",
        f"give the plan {longer}",
        code="operations",
        arm=arm,
    )


def truncation(arms: Mapping[str, NDArray[Any]]) -> Gate:
    """Check whether latencies look cut off at a limit.

    There are two signs. One is a wall: ten or more values are in the topmost hundredth of the range above the median.
    The other is that the maxima of two arms agree within 0.05 % although each tail is long (maximum above three times
    the median). In a known published comparison the waits of the two arms stop at 3,999 and 3,998 us, while waits of
    291,780 us occur.

    Args:
        arms: Latencies of each arm [ns], in rising order.
    """
    name = "latencies not cut off"
    long_enough = {arm: v for arm, v in arms.items() if len(v) >= 1000}
    if not long_enough:
        return Gate(name, None, "fewer than 1,000 latencies in each arm", code="cut off")
    advice = "look for a timeout, a latency limit or a filter; the data lack the tail beyond it"
    for arm, values in long_enough.items():
        top, middle = float(values[-1]), float(values[len(values) // 2])
        edge = top - (top - middle) / 100
        crowd = len(values) - int(np.searchsorted(values, edge, side="left"))
        if top > middle and crowd >= WALL_VALUES:
            text = f"{crowd} latencies of {arm} are at the maximum of {duration(top)}, and none is above it"
            return Gate(name, False, text, advice, code="cut off")
    tops = [float(v[-1]) for v in long_enough.values() if v[-1] > 3 * v[len(v) // 2]]
    for i, a in enumerate(tops):
        if any(abs(a - b) <= 0.0005 * max(a, b) for b in tops[i + 1 :]):
            return Gate(name, False, f"the maxima of two arms agree: {duration(a)}", advice, code="cut off")
    return Gate(name, True, "no arm has many latencies at its maximum", code="cut off")


def enough_blocks(blocks: int, level: float) -> Gate:
    """Check whether chance alone can be ruled out at `level` with this number of blocks."""
    least = least_blocks.least_paired_blocks(level)
    if blocks >= least:
        return Gate("enough blocks", True, f"{blocks} blocks", code="blocks")
    return Gate(
        "enough blocks",
        False,
        f"{blocks} blocks; a verdict at {level * 100:g} % takes at least {least}",
        f"run at least {least} complete blocks, preferably 20 (--blocks 20)",
        code="blocks",
    )


def blocks_missing(blocks: int, missing: int) -> Gate:
    """Check whether blocks without a value are rare: at most a tenth of the number of blocks with one.

    Blocks that gave no value may be the ones that mattered.
    """
    text = f"{missing} of {blocks + missing} blocks gave no number"
    if missing <= blocks / 10:
        return Gate("blocks without a gap", True, text, code="missing")
    return Gate("blocks without a gap", False, text, "check the marks and errors of these blocks", code="missing")


def tail_support(label: str, q: float, counts: Sequence[int]) -> Gate:
    """Check whether each block has enough values for the tail quantile `q`: n (1 - q) of at least 10.

    Args:
        label: Name of the metric.
        q: The quantile, 0 to 1.
        counts: Number of operations of each block and arm.
    """
    name = f"enough values for {label}"
    if not counts:
        return Gate(name, None, "no blocks", code="tail")
    least = min(counts)
    if is_supported(least, q):
        return Gate(name, True, f"at least {least} operations in each block and arm", code="tail")
    wanted = math.ceil(VALUES_BEYOND_MIN / min(q, 1 - q) * (1 - 1e-9))
    return Gate(
        name,
        False,
        f"{least} operations in the smallest block; {label} needs {wanted}",
        "lengthen the turns until each block and arm has that many, or treat the metric with caution",
        code="tail",
    )


def has_tail(base: str, longest_ns: float, median_ns: float, times: float) -> Gate:
    """Check whether the longest operation of the base takes at least `times` its median, as the question presumes."""
    from dbdyno.stats.wording import duration

    name = "a tail to judge"
    if not median_ns > 0:
        return Gate(name, None, f"no operations of {base}", code="premise")
    found = longest_ns / median_ns
    text = f"the longest operation of {base} takes {duration(longest_ns)}, {found:.3g} times the median"
    if found >= times:
        return Gate(name, True, text, code="premise")
    return Gate(
        name,
        False,
        f"{text}; the question assumes {times:g} times or more",
        "measure where single operations take that long: on the real storage, or on a model with their cause",
        code="premise",
        because=f"this machine has no such tail: {text}, but the question assumes {times:g} times or more",
    )
