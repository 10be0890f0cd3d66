"""Gates for effects of time on a run: drift, a difference that changes, stalls, and steps of the clock.

The slope of a regression of log values on time has a standard error, so each of these checks knows its smallest visible
change, with 80 % power at 99 %. A check that could not have seen a change by half returns "not known" instead of
"passed". A change by half or more fails whether it is significant or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dbdyno.stats.distributions import t_quantile
from dbdyno.stats.gates import Gate
from dbdyno.stats.regression import lm
from dbdyno.stats.samples import autocorrelation
from dbdyno.stats.wording import percent

#: Smallest change over the run that is worth a warning, even if a smaller one is significant.
DRIFT_MIN = 0.05
#: Change (half more, a third less) from which on the run measured two states of the machine.
DRIFT_LARGE = 0.5
#: Shortest gap without any answer that is a stall [s], and how many times longer than nine of ten transactions it must
#: also be.
STALL_S = 0.5
STALL_TIMES = 20.0
#: Smallest step of the wall clock that matters [s]; smaller ones are normal time synchronisation.
STEP_S = 0.1
#: Largest share of all processors that other processes may use beside programs: a fifth of one core of two.
OTHERS_SHARE_MAX = 0.1

_LEVEL = 0.99
_STILL_LEVEL = 0.95
_LARGE = math.log1p(DRIFT_LARGE)
_MOVES_MIN = math.log1p(DRIFT_MIN)
_ADVICE = "lengthen the warm-up, or find out what else was running"


@dataclass(frozen=True, slots=True)
class Trend:
    """A straight line through log values over time, over the whole run.

    Attributes:
        blocks: Number of known blocks.
        mean: Mean of the logs.
        change: Change of the line over the run, as a log.
        visible: Smallest change that would have been seen, as a log.
        p: p value of the hypothesis of no change.
        end_error: Standard error of the line at an end of the run.
    """

    blocks: int
    mean: float
    change: float
    visible: float
    p: float
    end_error: float

    @property
    def certain(self) -> bool:
        """Return True if the change is significant at 99 %."""
        return self.p <= 1 - _LEVEL

    def span(self, level: float) -> tuple[float, float]:
        """Return the lowest and the highest value that the line's intervals cover at the two ends of the run."""
        reach = t_quantile(self.blocks - 2, 0.5 + level / 2) * self.end_error
        half = abs(self.change) / 2 + reach
        return self.mean - half, self.mean + half


def trend(logs: ArrayLike, at_s: ArrayLike) -> Trend | None:
    """Return the regression line of logs over time [s]; None below five known blocks or if all have the same time."""
    y, x = np.asarray(logs, dtype=np.float64), np.asarray(at_s, dtype=np.float64)
    good = np.isfinite(y) & np.isfinite(x)
    y, x = y[good], x[good]
    if y.size < 5 or float(np.ptp(x)) <= 0:
        return None
    fit, length, df = lm(y, x), float(np.ptp(x)), float(y.size - 2)
    line = fit["x1"]
    reach = t_quantile(df, 0.5 + _LEVEL / 2) + t_quantile(df, 0.8)
    p = line.p if line.error > 0 else float(line.estimate == 0)
    end_error = math.hypot(fit.residual_error / math.sqrt(y.size), line.error * length / 2)
    return Trend(y.size, float(y.mean()), line.estimate * length, reach * line.error * length, p, end_error)


def drift(label: str, values: ArrayLike, at_s: ArrayLike, *, is_level: bool = False) -> Gate:
    """Check whether a metric drifted over the run.

    It fails if the change is significant at 99 % and at least 5 %, or if it is by half or more, significant or not.
    Because arms alternate in random order, the sign of a comparison remains valid even then. For the metric that says
    how fast the base was (`is_level`), a significant change by half withholds the verdict: the run measured two states
    of the machine, and the mean ratio belongs to neither.

    Args:
        label: Name of the metric.
        values: Value of each block; NaN values are left out.
        at_s: Start of each block [s].
        is_level: True for the metric that says how fast the base was.
    """
    name, y = f"no drift of {label}", np.asarray(values, dtype=np.float64)
    found = trend(np.log(np.where(y > 0, y, np.nan)), at_s)
    if found is None:
        known = int(np.sum(np.isfinite(y) & (y > 0)))
        return Gate(name, None, f"{known} blocks are too few to show a drift of {label}", code="drift")
    said = _signed_change(found.change)
    if abs(found.change) >= _LARGE and found.certain and is_level:
        because = f"{label} drifted {said} during the run, so it measured two states of the machine"
        return Gate(name, False, f"{label} drifted {said} over the run", _ADVICE, code="level", because=because)
    if abs(found.change) >= _LARGE or (found.certain and abs(math.expm1(found.change)) >= DRIFT_MIN):
        surely = "" if found.certain else f", but {found.blocks} blocks are too few to be certain"
        return Gate(name, False, f"{label} drifted {said} over the run{surely}", _ADVICE, code="drift")
    visible = f"{percent(math.expm1(found.visible))} % or more"
    if found.visible > _LARGE:
        text = f"{label} changed {said}, but {found.blocks} blocks can detect only a drift of {visible}"
        return Gate(name, None, text, code="drift")
    text = f"{label} changed {said} over the run; {found.blocks} blocks can detect {visible}"
    return Gate(name, True, text, code="drift")


def base_level(label: str, values: ArrayLike, at_s: ArrayLike, ratios: Mapping[str, str]) -> Iterator[Gate]:
    """Check the drift of the metric that says how fast the base was, if arms are compared within blocks.

    If the base drifted by half, the verdict is withheld only for arms whose ratio moved, or may have moved, with the
    base. For arms whose ratio stayed the same, the drift is only reported. Without any ratio, the gate concerns the
    whole run.

    Args:
        label: Name of the metric.
        values: Value of the base in each block.
        at_s: Start of each block [s].
        ratios: For each arm compared within blocks, why its ratio is not valid (`ratio_problem`); empty if it is valid.
    """
    gate = drift(label, values, at_s, is_level=True)
    if not gate.withholds or not ratios:
        yield gate
        return
    for arm, why in ratios.items():
        if why:
            text = f"{gate.text}, and {why}"
            yield replace(gate, text=text, arm=arm, because=text)
    if not all(ratios.values()):
        yield replace(gate, text=f"{gate.text}; within blocks the ratios stayed the same", code="drift", because="")


def ratio_problem(arm: str, base: str, log_ratios: ArrayLike, at_s: ArrayLike, threshold: float) -> str:
    """Return why a ratio within blocks is not valid for a run whose base drifted, as a clause; empty if valid.

    The ratio is valid if it did not move in the sense of `drift_clause`, and if its line over time has, at 95 %, the
    same sign at both ends of the run, or is within 5 % of no difference at both (or within a larger threshold).
    """
    found = trend(log_ratios, at_s)
    if found is None:
        return f"too few blocks to show whether {arm} against {base} stayed the same"
    if said := drift_clause(arm, base, found, threshold):
        return said
    low, high = found.span(_STILL_LEVEL)
    if low > 0 or high < 0 or max(-low, high) <= max(math.log1p(threshold), _MOVES_MIN):
        return ""
    return f"{found.blocks} blocks cannot tell whether {arm} against {base} stayed the same"


def drift_clause(arm: str, base: str, trend: Trend, threshold: float, *, tests: int = 1) -> str:
    """Return a clause about a ratio that certainly moved by more than half its mean, 5 % and the threshold; else "".

    The significance level is divided by the number of `tests`.
    """
    least = max(abs(trend.mean) / 2, _MOVES_MIN, math.log1p(threshold))
    if trend.p > (1 - _LEVEL) / tests or abs(trend.change) <= least:
        return ""
    begin, end = (_signed_change(trend.mean + way * trend.change / 2) for way in (-1, 1))
    return f"{arm} against {base} moved with it ({begin} at the beginning, {end} at the end)"


def steady_difference(arm: str, base: str, log_ratios: ArrayLike, at_s: ArrayLike, threshold: float) -> Gate:
    """Check whether the difference between two arms is constant over the run.

    It fails with code "difference" if the difference moved significantly and so far that it changes its sign: half the
    move is larger than the mean difference and than the threshold. The mean then describes no part of the run. If the
    difference keeps its sign but moved significantly by more than half of the mean (a leak, a table that grows), the
    mean is valid only for this length of run: it fails with code "moving", which warns.
    """
    name = "same difference over the whole run"
    found = trend(log_ratios, at_s)
    if found is None:
        return Gate(name, None, "too few blocks to detect a moving difference", code="difference", arm=arm)
    begin, end = (found.mean + way * found.change / 2 for way in (-1, 1))
    text = f"{arm} against {base}: {_signed_change(begin)} at the beginning, {_signed_change(end)} at the end"
    if found.certain and abs(found.change) / 2 > max(abs(found.mean), math.log1p(threshold)):
        return Gate(
            name,
            False,
            text,
            "find what changed during the run; lengthen the warm-up, or judge its parts separately",
            code="difference",
            arm=arm,
            because=f"the difference between {arm} and {base} changed its sign during the run "
            f"({_signed_change(begin)} at the beginning, {_signed_change(end)} at the end)",
        )
    if drift_clause(arm, base, found, threshold):
        step = f"a longer run would differ: look for what grows with {arm} or {base}, or judge the end separately"
        return Gate(name, False, f"the difference changes: {text}", step, code="moving", arm=arm)
    if found.visible / 2 > max(abs(found.mean), _LARGE):
        text = f"{found.blocks} blocks are too few to show whether it changes"
        return Gate(name, None, text, code="difference", arm=arm)
    return Gate(name, True, text, code="difference", arm=arm)


def independent_blocks(log_ratios: ArrayLike, arm: str = "") -> Gate:
    """Check whether the blocks' log ratios are autocorrelated: lag-1 autocorrelation above 2 / sqrt n.

    Below 10 blocks the result is unknown: an autocorrelation is seen with 80 % power only from about 2.8 / sqrt n on,
    and below 10 blocks that is about 0.9 or more.
    """
    name = "blocks independent of each other"
    values: NDArray[np.float64] = np.asarray(log_ratios, dtype=np.float64)
    values = values[np.isfinite(values)]
    r = autocorrelation(values)
    if values.size < 10 or math.isnan(r):
        return Gate(name, None, f"{values.size} blocks are too few to show a dependence", code="independence", arm=arm)
    text = f"autocorrelation of successive blocks {r:.2f}"
    if r <= 2 / math.sqrt(values.size):
        return Gate(name, True, text, code="independence", arm=arm)
    return Gate(
        name,
        False,
        f"{text}; the interval covers the mean difference over these blocks",
        "the difference itself changes over time: lengthen the run, or find what changes",
        code="independence",
        arm=arm,
    )


@dataclass(frozen=True, slots=True)
class Stall:
    """A gap in which no session got an answer: its block, its start since the start of the run [s], its length [s]."""

    block: int
    at_s: float
    length_s: float


def stall_limit_s(usual_ns: float) -> float:
    """Return the shortest gap [s] that is a stall if nine of ten transactions take at most `usual_ns`."""
    return max(STALL_S, STALL_TIMES * usual_ns / 1e9)


def no_stall(stalls: Sequence[Stall], limit_s: float) -> Gate:
    """Check whether the engine or the load generator stalled; `limit_s` is the shortest gap that counts [s]."""
    name = "no stall"
    if not stalls:
        return Gate(name, True, f"no gap of {limit_s:.3g} s without an answer", code="stall")
    worst = max(stalls, key=lambda stall: stall.length_s)
    where = (
        f"no session got an answer for {worst.length_s:.3g} s in block {worst.block}, {worst.at_s:.0f} s after the "
        "run began"
    )
    more = sorted({stall.block for stall in stalls if stall is not worst})
    rest = f"; shorter stalls in block {', '.join(map(str, more))}" if more else ""
    return Gate(
        name,
        False,
        f"{where}{rest}",
        "check the logs of the engine and the machine at that time: a checkpoint, a lock, a paused machine?",
        code="stall",
    )


def clock_kept(steps: Sequence[tuple[int, float]]) -> Gate:
    """Check whether the wall clock was stepped; `steps` are pairs of block and observed step [s]."""
    large = [(block, step) for block, step in steps if abs(step) >= STEP_S]
    if not large:
        return Gate("the clock was not stepped", True, "wall clock and monotonic clock agree", code="clock")
    said = ", ".join(f"by {step:+.3g} s before block {block}" for block, step in large)
    return Gate(
        "the clock was not stepped",
        False,
        f"the wall clock was stepped {said}; durations are right, times of day are not",
        "let the machine's time service slew the clock instead of stepping it",
        code="clock",
    )


def processors_free(share: float, count: int) -> Gate:
    """Check whether the processors were free; other programs used `share` of all `count` processors."""
    free = share <= OTHERS_SHARE_MAX
    return Gate(
        "no other load on the processors",
        free,
        f"other programs used {100 * share:.0f} % of the {count} processors during the run",
        "" if free else "run it on an idle machine: more threads than free processors do not help",
        code="processors",
    )


def _signed_change(log_change: float) -> str:
    change = math.expm1(log_change)
    return f"{'+' if change >= 0 else '-'}{percent(change)} %"
