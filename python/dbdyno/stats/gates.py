"""Validity gates: whether the numbers may be compared at all.

Each gate is a pure check on numbers and gives a `Gate`: `ok` True, False, or None where the
numbers do not allow the check; a text that says what was found; and the next step. A gate never
changes a verdict; it stands beside it. The limits are named constants with their reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dbdyno.stats.quantiles import VALUES_BEYOND_MIN, supported
from dbdyno.stats.samples import autocorrelation
from dbdyno.stats.words import duration, percent

#: Work per operation may differ by this much between arms before a comparison of times is doubtful.
WORK_TOLERANCE = 0.01
#: Share of arrivals that the generator itself may start late.
LAG_SHARE_MAX = 0.01
#: A change over the run below this is not worth a warning, however significant.
DRIFT_MIN = 0.05
#: Blocks below which intervals are wide and their level rests on normality.
BLOCKS_MIN = 10
#: Values in the topmost hundredth of the range above the median that make a wall. An exponential
#: tail has 0.1 to 0.2 there, a normal one fewer than 1, however many values there are.
WALL_VALUES = 10
#: Gregg (2013), "Frequency Trails: Modes and Modality": beyond this there are several modes.
MVALUE_MAX = 2.4


@dataclass(frozen=True, slots=True)
class Gate:
    """One check: its name, whether it holds (None: cannot be checked), what was found, what to
    do."""

    name: str
    ok: bool | None
    text: str
    next: str = ""


def equal_work(what: str, per_operation: Mapping[str, float], *, tolerance: float = WORK_TOLERANCE) -> Gate:
    """Whether the arms did the same work per operation.

    `what` names it ("rows", "redo bytes", "statements"), `per_operation` maps each arm to its mean
    per operation (NaN: not known). The first arm is the one the others are held against.
    """
    name = f"equal {what} per operation"
    known = {arm: value for arm, value in per_operation.items() if not math.isnan(value)}
    if len(known) < 2:
        return Gate(name, None, f"{what} per operation are not known for two arms")
    first, base = next(iter(known.items()))
    worst, value = max(known.items(), key=lambda item: abs(item[1] - base))
    apart = abs(value - base)
    if apart <= tolerance * max(abs(base), abs(value)):
        return Gate(name, True, f"all arms: {base:.4g} {what} per operation")
    return Gate(
        name,
        False,
        f"{worst} has {value:.4g} {what} per operation, {first} {base:.4g}",
        "the arms do different work: compare times per unit of work, or make the work equal",
    )


def generator_lag(late: int, arrivals: int, *, worst_ns: float = math.nan) -> Gate:
    """Whether the load generator kept its own schedule (open loop): `late` of `arrivals` started
    late for want of the generator, not of the engine."""
    name = "generator keeps its schedule"
    if arrivals <= 0:
        return Gate(name, None, "no arrivals")
    share = late / arrivals
    worst = "" if math.isnan(worst_ns) else f", at worst {duration(worst_ns)}"
    text = f"{percent(share)} % of {arrivals} arrivals started late{worst}"
    if share <= LAG_SHARE_MAX:
        return Gate(name, True, text)
    return Gate(name, False, text, "lower the rate, add sessions, or free a core for the generator")


def given_up(skipped: int, arrivals: int) -> Gate:
    """Whether all arrivals were carried out (open loop): those given up have no latency, so every
    quantile looks better than it was."""
    name = "all arrivals carried out"
    if arrivals <= 0:
        return Gate(name, None, "no arrivals")
    text = f"{skipped} of {arrivals} arrivals were given up"
    if skipped == 0:
        return Gate(name, True, text)
    return Gate(
        name,
        False,
        text,
        "the engine cannot serve this rate: lower it, and read the quantiles as lower bounds",
    )


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
        return Gate(name, None, "fewer than 1,000 latencies in each arm")
    advice = "look for a timeout, a latency limit or a filter; the tail beyond it is not in the data"
    for arm, values in long_enough.items():
        top, middle = float(values[-1]), float(values[len(values) // 2])
        edge = top - (top - middle) / 100
        crowd = len(values) - int(np.searchsorted(values, edge, side="left"))
        if top > middle and crowd >= WALL_VALUES:
            text = f"{crowd} latencies of {arm} lie at {duration(top)}, the maximum, and none beyond"
            return Gate(name, False, text, advice)
    tops = [float(v[-1]) for v in long_enough.values() if v[-1] > 3 * v[len(v) // 2]]
    for i, a in enumerate(tops):
        if any(abs(a - b) <= 0.0005 * max(a, b) for b in tops[i + 1 :]):
            return Gate(name, False, f"the maxima of two arms agree: {duration(a)}", advice)
    return Gate(name, True, "no wall at the maximum of any arm")


def drift(label: str, values: ArrayLike, at_s: ArrayLike, *, level: float = 0.99, least: float = DRIFT_MIN) -> Gate:
    """Whether a metric drifted over the run: straight line of its log on time, by block.

    `values` per block (NaN left out), `at_s` the block's start [s]. Not ok when the slope is
    significant at `level` and the change from first to last block is at least `least`. Randomised
    blocks keep the comparison right all the same; the absolute numbers belong to a machine in
    motion.
    """
    from scipy import stats

    name = f"no drift of {label}"
    y, x = np.asarray(values, dtype=np.float64), np.asarray(at_s, dtype=np.float64)
    good = np.isfinite(y) & (y > 0) & np.isfinite(x)
    y, x = np.log(y[good]), x[good]
    if y.size < 5 or float(np.ptp(x)) <= 0:
        return Gate(name, None, f"{y.size} blocks are too few to see a drift")
    line = stats.linregress(x, y)
    change = math.expm1(float(line.slope) * float(np.ptp(x)))
    text = f"{'+' if change >= 0 else '-'}{percent(change)} % over the run"
    if float(line.pvalue) > 1 - level or abs(change) < least:
        return Gate(name, True, text)
    return Gate(
        name,
        False,
        text,
        "the machine was changing: lengthen the warm-up, or look for what else ran",
    )


def independent_blocks(log_ratios: ArrayLike) -> Gate:
    """Whether the blocks' log ratios follow each other: lag-1 autocorrelation above 2 / sqrt n."""
    name = "blocks independent of each other"
    values = np.asarray(log_ratios, dtype=np.float64)
    values = values[np.isfinite(values)]
    r = autocorrelation(values)
    if values.size < 8 or math.isnan(r):
        return Gate(name, None, f"{values.size} blocks are too few to see a dependence")
    text = f"autocorrelation of successive blocks {r:.2f}"
    if r <= 2 / math.sqrt(values.size):
        return Gate(name, True, text)
    return Gate(
        name,
        False,
        f"{text}; the interval speaks of the mean difference over these blocks",
        "the difference itself changes over time: lengthen the run, or find what changes",
    )


def enough_blocks(blocks: int, *, missing: int = 0, least: int = BLOCKS_MIN) -> Gate:
    """Whether there are blocks enough for a verdict, and how many could not be used."""
    text = f"{blocks} blocks" + (f", {missing} more could not be used" if missing else "")
    if blocks >= least and missing <= blocks / 10:
        return Gate("enough blocks", True, text)
    return Gate("enough blocks", False, text, f"run at least {least} whole blocks (--blocks)")


def tail_support(label: str, q: float, counts: Sequence[int]) -> Gate:
    """Whether each block has values enough for a tail quantile: n (1 - q) at least 10.

    `counts` are the operations per block and arm.
    """
    name = f"values enough for {label}"
    if not counts:
        return Gate(name, None, "no blocks")
    least = min(counts)
    if supported(least, q):
        return Gate(name, True, f"at least {least} operations in each block and arm")
    wanted = math.ceil(VALUES_BEYOND_MIN / min(q, 1 - q) * (1 - 1e-9))
    return Gate(
        name,
        False,
        f"{least} operations in the smallest block; {label} needs {wanted}",
        "lengthen the turns so that each block and arm has that many, or read the metric with care",
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
        return Gate(name, None, "fewer than 1,000 latencies")
    low, high = np.quantile(positive, [0.005, 0.995])
    if high <= low:
        return Gate(name, True, "all latencies are equal")
    counts, _ = np.histogram(np.log(positive), bins=bins, range=(math.log(low), math.log(high)))
    smooth = np.convolve(counts, np.ones(3) / 3)
    mvalue = float(np.abs(np.diff(smooth, prepend=0, append=0)).sum() / smooth.max())
    if mvalue <= MVALUE_MAX:
        return Gate(name, True, f"mvalue {mvalue:.1f}")
    return Gate(
        name,
        False,
        f"mvalue {mvalue:.1f}: several modes",
        "mean and median describe no typical wait: look at the distribution, split the statements",
    )
