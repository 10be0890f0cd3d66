"""What time may do to a run: drift, a difference that moves, stalls, a clock that is stepped.

A line of the log on time has a slope with a standard error, so each of these checks knows what it
could have seen: its smallest visible change, with 80 % power at 99 %. A check that could not have
seen a change by half says "not known", not "holds"; and a change by half or more fails whether it
is certain or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dbdyno.stats.gates import Gate
from dbdyno.stats.regression import lm
from dbdyno.stats.samples import autocorrelation
from dbdyno.stats.wording import percent

#: A change over the run below this is not worth a warning, however certain.
DRIFT_MIN = 0.05
#: From this change on (half more, a third less) the run saw two states of the machine.
DRIFT_LARGE = 0.5
#: A gap without any answer is a stall from here on [s], if it is also so many times as long as
#: nine of ten transactions.
STALL_S = 0.5
STALL_TIMES = 20.0
#: A step of the wall clock below this [s] is what keeping time takes.
STEP_S = 0.1
#: Share of the processors that others may use beside programs: of two cores a fifth of one.
OTHERS_SHARE_MAX = 0.1

_LEVEL = 0.99
_STILL_LEVEL = 0.95
_LARGE = math.log1p(DRIFT_LARGE)
_MOVES_MIN = math.log1p(DRIFT_MIN)
_ADVICE = "lengthen the warm-up, or look for what else ran"


@dataclass(frozen=True, slots=True)
class Trend:
    """A straight line through logs over time, over the whole run: `change` and the least change
    that would have been seen, both logs; `p` that of no change; `mean` is the logs' own; `end_error` the standard
    error of the line at an end of the run."""

    blocks: int
    mean: float
    change: float
    visible: float
    p: float
    end_error: float

    @property
    def certain(self) -> bool:
        """Whether there is a change, at 99 %."""
        return self.p <= 1 - _LEVEL

    def span(self, level: float) -> tuple[float, float]:
        """The least and the most that the line is at either end of the run: both ends of an interval of that level at
        each."""
        from scipy import special

        reach = float(special.stdtrit(self.blocks - 2, 0.5 + level / 2)) * self.end_error
        half = abs(self.change) / 2 + reach
        return self.mean - half, self.mean + half


def trend(logs: ArrayLike, at_s: ArrayLike) -> Trend | None:
    """The line; None below five known blocks, or where they are of one moment."""
    from scipy import special

    y, x = np.asarray(logs, dtype=np.float64), np.asarray(at_s, dtype=np.float64)
    good = np.isfinite(y) & np.isfinite(x)
    y, x = y[good], x[good]
    if y.size < 5 or float(np.ptp(x)) <= 0:
        return None
    fit, length, df = lm(y, x), float(np.ptp(x)), float(y.size - 2)
    line = fit["x1"]
    reach = float(special.stdtrit(df, 0.5 + _LEVEL / 2) + special.stdtrit(df, 0.8))
    p = line.p if line.error > 0 else float(line.estimate == 0)
    end_error = math.hypot(fit.residual_error / math.sqrt(y.size), line.error * length / 2)
    return Trend(y.size, float(y.mean()), line.estimate * length, reach * line.error * length, p, end_error)


def drift(label: str, values: ArrayLike, at_s: ArrayLike, *, is_level: bool = False) -> Gate:
    """Whether a metric drifted over the run; `values` per block (NaN left out), `at_s` the blocks'
    begins [s].

    Fails when the change is certain and at least 5 %, or by half or more, certain or not. Blocks in
    random order keep the sign of a comparison right all the same. Of the metric that says how fast
    the base was (`is_level`), a change by half that is certain takes the verdict away: the run saw
    two states of the machine, and the mean ratio belongs to neither.
    """
    name, y = f"no drift of {label}", np.asarray(values, dtype=np.float64)
    found = trend(np.log(np.where(y > 0, y, np.nan)), at_s)
    if found is None:
        known = int(np.sum(np.isfinite(y) & (y > 0)))
        return Gate(name, None, f"{known} blocks are too few to see a drift of {label}", code="drift")
    said = _signed(found.change)
    if abs(found.change) >= _LARGE and found.certain and is_level:
        because = f"{label} drifted {said} during the run, so it measured two states of the machine"
        return Gate(name, False, f"{label} drifted {said} over the run", _ADVICE, code="level", because=because)
    if abs(found.change) >= _LARGE or (found.certain and abs(math.expm1(found.change)) >= DRIFT_MIN):
        surely = "" if found.certain else f", though {found.blocks} blocks cannot be certain of it"
        return Gate(name, False, f"{label} drifted {said} over the run{surely}", _ADVICE, code="drift")
    visible = f"{found.blocks} blocks show {percent(math.expm1(found.visible))} % or more"
    if found.visible > _LARGE:
        return Gate(name, None, f"{label} changed {said}, but {visible} only", code="drift")
    return Gate(name, True, f"{label} changed {said} over the run; {visible}", code="drift")


def level(label: str, values: ArrayLike, at_s: ArrayLike, ratios: Mapping[str, str]) -> Iterator[Gate]:
    """The drift of the metric that says how fast the base was, where arms are compared within blocks. `ratios` has for
    each such arm why its ratio does not stand (`not_still`), empty where it does.

    A drift of the base by half takes the verdict away only from arms whose ratio moved with it, or may have; beside
    ratios that held still it is told, and is no more than that. Without any ratio it is of the whole run.
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
        yield replace(gate, text=f"{gate.text}; within blocks the ratios held still", code="drift", because="")


def not_still(arm: str, base: str, log_ratios: ArrayLike, at_s: ArrayLike, threshold: float) -> str:
    """Why a ratio within blocks does not stand for a run whose base drifted, as a clause; empty where it does.

    It stands where its line over time has one sign at both ends of the run, or lies within 5 % (within the threshold,
    where that is more) of none at both, at 95 %; and where it did not certainly move as far as `moved` says.
    """
    found = trend(log_ratios, at_s)
    if found is None:
        return f"too few blocks show whether {arm} against {base} held still"
    if said := moved(arm, base, found, threshold):
        return said
    low, high = found.span(_STILL_LEVEL)
    if low > 0 or high < 0 or max(-low, high) <= max(math.log1p(threshold), _MOVES_MIN):
        return ""
    return f"whether {arm} against {base} held still {found.blocks} blocks cannot tell"


def moved(arm: str, base: str, found: Trend, threshold: float, *, tests: int = 1) -> str:
    """What a ratio did that certainly moved by more than half of itself, and by 5 % and the threshold, as a clause;
    empty where it did not. The level is shared by so many `tests`."""
    least = max(abs(found.mean) / 2, _MOVES_MIN, math.log1p(threshold))
    if found.p > (1 - _LEVEL) / tests or abs(found.change) <= least:
        return ""
    begin, end = (_signed(found.mean + way * found.change / 2) for way in (-1, 1))
    return f"{arm} against {base} moved with it ({begin} at the beginning, {end} at the end)"


def steady_difference(arm: str, base: str, log_ratios: ArrayLike, at_s: ArrayLike, threshold: float) -> Gate:
    """Whether the difference between two arms is one difference.

    Fails when it certainly moved over the run, and so far that it changes its sign: half the move
    is larger than the mean difference, and than the threshold. The mean then describes no part of
    the run. Where it keeps its sign, and certainly moved by more than half of the mean difference (a
    leak, a table that grows), the mean belongs to this length of run alone: a failure that warns.
    """
    name = "one difference over the run"
    found = trend(log_ratios, at_s)
    if found is None:
        return Gate(name, None, "too few blocks to see the difference move", code="difference", arm=arm)
    begin, end = (found.mean + way * found.change / 2 for way in (-1, 1))
    text = f"{arm} against {base}: {_signed(begin)} at the beginning, {_signed(end)} at the end"
    if found.certain and abs(found.change) / 2 > max(abs(found.mean), math.log1p(threshold)):
        return Gate(
            name,
            False,
            text,
            "find what changed during the run; lengthen the warm-up, or judge its parts by themselves",
            code="difference",
            arm=arm,
            because=f"the difference between {arm} and {base} changed its sign during the run "
            f"({_signed(begin)} at the beginning, {_signed(end)} at the end)",
        )
    if moved(arm, base, found, threshold):
        step = f"a longer run would say otherwise: look for what grows with {arm} or {base}, or judge the end by itself"
        return Gate(name, False, f"the difference moves: {text}", step, code="moving", arm=arm)
    if found.visible / 2 > max(abs(found.mean), _LARGE):
        return Gate(name, None, f"{found.blocks} blocks are too few to see it move", code="difference", arm=arm)
    return Gate(name, True, text, code="difference", arm=arm)


def independent_blocks(log_ratios: ArrayLike, arm: str = "") -> Gate:
    """Whether the blocks' log ratios follow each other: lag-1 autocorrelation above 2 / sqrt n.

    It is seen with 80 % power from about 2.8 / sqrt n on; where that is above 0.9, nothing is known.
    """
    name = "blocks independent of each other"
    values: NDArray[np.float64] = np.asarray(log_ratios, dtype=np.float64)
    values = values[np.isfinite(values)]
    r = autocorrelation(values)
    if values.size < 10 or math.isnan(r):
        return Gate(name, None, f"{values.size} blocks are too few to see a dependence", code="independence", arm=arm)
    text = f"autocorrelation of successive blocks {r:.2f}"
    if r <= 2 / math.sqrt(values.size):
        return Gate(name, True, text, code="independence", arm=arm)
    return Gate(
        name,
        False,
        f"{text}; the interval speaks of the mean difference over these blocks",
        "the difference itself changes over time: lengthen the run, or find what changes",
        code="independence",
        arm=arm,
    )


@dataclass(frozen=True, slots=True)
class Stall:
    """A gap in which no session got an answer: in which block, from when on in the run, how long."""

    block: int
    at_s: float
    length_s: float


def stall_limit_s(usual_ns: float) -> float:
    """From which gap on it is a stall, where nine of ten transactions take `usual_ns` at most."""
    return max(STALL_S, STALL_TIMES * usual_ns / 1e9)


def no_stall(stalls: Sequence[Stall], limit_s: float) -> Gate:
    """Whether the engine, or the load generator, stood still for a while."""
    name = "no stall"
    if not stalls:
        return Gate(name, True, f"no gap of {limit_s:.3g} s without an answer", code="stall")
    worst = max(stalls, key=lambda stall: stall.length_s)
    where = (
        f"no session got an answer for {worst.length_s:.3g} s in block {worst.block}, {worst.at_s:.0f} s into the run"
    )
    more = sorted({stall.block for stall in stalls if stall is not worst})
    rest = f"; shorter stalls in block {', '.join(map(str, more))}" if more else ""
    return Gate(
        name,
        False,
        f"{where}{rest}",
        "look at that moment in the engine's log and the machine's: a checkpoint, a lock, a paused machine?",
        code="stall",
    )


def clock_kept(steps: Sequence[tuple[int, float]]) -> Gate:
    """Whether the wall clock was left alone; `steps` are (block, step [s]) as it was seen."""
    large = [(block, step) for block, step in steps if abs(step) >= STEP_S]
    if not large:
        return Gate("the clock was not stepped", True, "wall clock and monotonic clock agree", code="clock")
    said = ", ".join(f"by {step:+.3g} s before block {block}" for block, step in large)
    return Gate(
        "the clock was not stepped",
        False,
        f"the wall clock was stepped {said}; lengths are right, times of day are not",
        "let the machine's time service slew the clock instead of stepping it",
        code="clock",
    )


def processors_free(share: float, count: int) -> Gate:
    """Whether the processors were there for the programs; `share` is what others used of all `count` of them."""
    free = share <= OTHERS_SHARE_MAX
    return Gate(
        "the processors were free",
        free,
        f"others used {100 * share:.0f} % of the {count} processors meanwhile",
        "" if free else "run it where nothing else runs: threads beyond the processors that are free bring nothing",
        code="processors",
    )


def _signed(log_change: float) -> str:
    change = math.expm1(log_change)
    return f"{'+' if change >= 0 else '-'}{percent(change)} %"
