"""Validity gates: whether the numbers may be compared at all.

Each gate is a pure check on numbers and gives a `Gate`: `ok` True, False, or None where the
numbers do not allow the check; a text that says what was found; and the next step. What a failure
does to the verdict follows from the gate's code (`dbdyno.base.decisions`). The limits are named constants with
their reason. What time may do to a run is checked in `gates_in_time`, what was lost on the way in
`gates_lost`.
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
from dbdyno.stats.quantiles import VALUES_BEYOND_MIN, supported
from dbdyno.stats.wording import duration, percent

#: Work per operation may differ by this much between arms before a comparison of times is doubtful.
WORK_TOLERANCE = 0.01
#: Share of arrivals that the generator itself may start late.
LAG_SHARE_MAX = 0.01
#: Transactions of a session in a slice below which the slice is too short. Sessions that end early
#: wait for the last one, on average half a transaction or more: with 5 in a slice the load falls
#: short of its sessions for about a tenth of the time, and the slice overruns by about as much.
OPERATIONS_MIN = 5
#: Values in the topmost hundredth of the range above the median that make a wall. An exponential
#: tail has 0.1 to 0.2 there, a normal one fewer than 1, however many values there are.
WALL_VALUES = 10
#: Gregg (2013), "Frequency Trails: Modes and Modality": beyond this there are several modes.
MVALUE_MAX = 2.4


@dataclass(frozen=True, slots=True)
class Gate:
    """One check: its name, whether it holds (None: not known), what was found, what to do. `code`
    is that of its rule; `arm` the arm that it concerns, empty for the whole run; `because` says in a
    clause why there is no verdict, where that is not the text."""

    name: str
    ok: bool | None
    text: str
    next: str = ""
    code: str = ""
    arm: str = ""
    because: str = ""

    @property
    def withholds(self) -> bool:
        """Whether it failed and takes the verdict away."""
        return self.ok is False and self.code in WITHHOLDING

    @property
    def reason(self) -> str:
        """Why there is no verdict, as a sentence."""
        said = self.because or self.text
        begins_with_name = bool(self.arm) and said.startswith(self.arm)
        return (said if begins_with_name else said[:1].upper() + said[1:]) + "."


def equal_work(what: str, arm: str, value: float, base: str, base_value: float) -> Gate:
    """Whether an arm did the same work per operation as its base.

    `what` names it ("rows", "redo bytes", "statements"); NaN where it is not known.
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


def operations_enough(arm: str, per_slice: float, stretch: str, *, counted: bool = False, waiting: bool = True) -> Gate:
    """Whether a slice or turn (`stretch`) holds enough transactions of each session. One that lasts for a `counted`
    number of them does not overrun, and the wait at its end is in no number: there one of each session is enough.
    So it is in a turn where nobody is `waiting` at its end, since there is one session."""
    name = f"transactions enough in a {stretch}"
    if math.isnan(per_slice):
        return Gate(name, None, f"{arm} has no {stretch} that counts", code="operations", arm=arm)
    text = f"a {stretch} of {arm} holds {per_slice:.3g} transactions of each session"
    alone = stretch == "turn" and not waiting
    if per_slice >= (1 if counted or alone else OPERATIONS_MIN):
        return Gate(name, True, text, code="operations", arm=arm)
    if counted:
        what = f"{text}: some sessions had nothing to do"
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


def generator_lag(late: int, arrivals: int, *, worst_ns: float = math.nan) -> Gate:
    """Whether the load generator kept its own schedule (open loop): `late` of `arrivals` started
    late for want of the generator, not of the engine."""
    name = "generator keeps its schedule"
    if arrivals <= 0:
        return Gate(name, None, "no arrivals", code="generator")
    share = late / arrivals
    worst = "" if math.isnan(worst_ns) else f", at worst {duration(worst_ns)}"
    text = f"{percent(share)} % of {arrivals} arrivals started late{worst}"
    if share <= LAG_SHARE_MAX:
        return Gate(name, True, text, code="generator")
    return Gate(name, False, text, "lower the rate, add sessions, or free a core for the generator", code="generator")


def truncation(arms: Mapping[str, NDArray[Any]]) -> Gate:
    """Whether latencies look cut off at a limit.

    `arms` maps each arm to its latencies [ns] in rising order. Two signs: a wall, where ten or
    more values crowd into the topmost hundredth of the range above the median; or maxima of two
    arms that agree to half a thousandth though each tail is long (maximum over thrice the median).
    The waits of a known published comparison stop at 3,999 and 3,998 us in its two arms, while
    waits of 291,780 us occur.
    """
    name = "latencies not cut off"
    long_enough = {arm: v for arm, v in arms.items() if len(v) >= 1000}
    if not long_enough:
        return Gate(name, None, "fewer than 1,000 latencies in each arm", code="cut off")
    advice = "look for a timeout, a latency limit or a filter; the tail beyond it is not in the data"
    for arm, values in long_enough.items():
        top, middle = float(values[-1]), float(values[len(values) // 2])
        edge = top - (top - middle) / 100
        crowd = len(values) - int(np.searchsorted(values, edge, side="left"))
        if top > middle and crowd >= WALL_VALUES:
            text = f"{crowd} latencies of {arm} lie at {duration(top)}, the maximum, and none beyond"
            return Gate(name, False, text, advice, code="cut off")
    tops = [float(v[-1]) for v in long_enough.values() if v[-1] > 3 * v[len(v) // 2]]
    for i, a in enumerate(tops):
        if any(abs(a - b) <= 0.0005 * max(a, b) for b in tops[i + 1 :]):
            return Gate(name, False, f"the maxima of two arms agree: {duration(a)}", advice, code="cut off")
    return Gate(name, True, "no wall at the maximum of any arm", code="cut off")


def enough_blocks(blocks: int, level: float) -> Gate:
    """Whether chance alone could be ruled out with so many blocks."""
    least = least_blocks.blocks_least(level)
    if blocks >= least:
        return Gate("enough blocks", True, f"{blocks} blocks", code="blocks")
    return Gate(
        "enough blocks",
        False,
        f"{blocks} blocks; a verdict at {level * 100:g} % takes at least {least}",
        f"run at least {least} whole blocks, better 20 (--blocks 20)",
        code="blocks",
    )


def blocks_missing(blocks: int, missing: int) -> Gate:
    """Whether most blocks gave a number: those that did not may be those that mattered."""
    text = f"{missing} of {blocks + missing} blocks gave no number"
    if missing <= blocks / 10:
        return Gate("blocks without a gap", True, text, code="missing")
    return Gate("blocks without a gap", False, text, "look into these blocks' marks and errors", code="missing")


def tail_support(label: str, q: float, counts: Sequence[int]) -> Gate:
    """Whether each block has values enough for a tail quantile: n (1 - q) at least 10.

    `counts` are the operations per block and arm.
    """
    name = f"values enough for {label}"
    if not counts:
        return Gate(name, None, "no blocks", code="tail")
    least = min(counts)
    if supported(least, q):
        return Gate(name, True, f"at least {least} operations in each block and arm", code="tail")
    wanted = math.ceil(VALUES_BEYOND_MIN / min(q, 1 - q) * (1 - 1e-9))
    return Gate(
        name,
        False,
        f"{least} operations in the smallest block; {label} needs {wanted}",
        "lengthen the turns so that each block and arm has that many, or read the metric with care",
        code="tail",
    )


def has_tail(base: str, longest_ns: float, median_ns: float, times: float) -> Gate:
    """Whether the base has the tail that a question presumes: its longest operation takes `times` its median."""
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
        f"{text}; the question presumes {times:g} times",
        "measure where single operations take that long: on the real storage, or on a model that has what makes them",
        code="premise",
        because=f"this machine has no such tail: {text}, and the question presumes {times:g} times",
    )


def modality(arm: str, values: NDArray[Any], *, bins: int = 40) -> Gate:
    """Whether a distribution has more than one mode, by Gregg's mvalue on log-spaced bins between
    the 0.5 and 99.5 % quantiles: sum of the steps between neighbouring bins over the highest bin;
    2 for a single mode. The bins are smoothed over three, so that noise does not count as
    modes."""
    name = f"one mode in {arm}"
    positive = np.asarray(values, dtype=np.float64)
    positive = positive[positive > 0]
    if positive.size < 1000:
        return Gate(name, None, "fewer than 1,000 latencies", code="modes")
    low, high = np.quantile(positive, [0.005, 0.995])
    if high <= low:
        return Gate(name, True, "all latencies are equal", code="modes")
    counts, _ = np.histogram(np.log(positive), bins=bins, range=(math.log(low), math.log(high)))
    smooth = np.convolve(counts, np.ones(3) / 3)
    mvalue = float(np.abs(np.diff(smooth, prepend=0, append=0)).sum() / smooth.max())
    if mvalue <= MVALUE_MAX:
        return Gate(name, True, f"mvalue {mvalue:.1f}", code="modes")
    return Gate(
        name,
        False,
        f"mvalue {mvalue:.1f}: several modes",
        "mean and median describe no typical wait: look at the distribution, split the statements",
        code="modes",
    )
