"""Words for numbers: durations, sizes, percentages, and the sentence of a comparison.

Percentages have one convention: they are the change of the metric itself from the baseline, |ratio - 1|, and the word
("slower" or "faster") says what the change means for the user. A latency ratio of 1.066 is "6.6 % slower"; a throughput
ratio of 0.94 is "6.0 % slower". From a factor of two on, it is a multiple, for times and rates alike: a latency ratio
of 0.4 is "2.50 times as fast".
"""

from __future__ import annotations

import math

from dbdyno.stats import least_blocks
from dbdyno.stats.comparison import BlockComparison
from dbdyno.stats.least_blocks import PROMISED_MOST

FACTOR_FROM = 2.0
"""Factor from which on a change is reported as a multiple."""
FACTOR_MAX = 10.0
"""Factor from which on the end of an interval that includes a ratio of 1 is reported as "many times"."""

_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "us"))
_PLAIN = {"faster": "fast", "slower": "slow"}
_SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def duration(ns: float) -> str:
    """Return nanoseconds as text with three significant digits and a suitable unit: 12300 is "12.3 us"."""
    for size, unit in _TIMES:
        if abs(ns) >= size * 0.9995:
            return f"{_digits(ns / size)} {unit}"
    return f"{_digits(ns)} ns"


def size(number_of_bytes: float) -> str:
    """Return bytes as text with three significant digits and a suitable binary unit: 1048576 is "1.00 MiB"."""
    for unit_size, unit in _SIZES:
        if abs(number_of_bytes) >= unit_size * 0.9995:
            return f"{_digits(number_of_bytes / unit_size)} {unit}"
    return f"{number_of_bytes:.0f} bytes"


def _digits(value: float) -> str:
    whole = len(str(int(abs(value) + 0.0005 * abs(value))))
    return f"{value:.{max(0, 3 - whole)}f}"


def percent(share: float) -> str:
    """Return a share as a percentage without its sign: one decimal below 100 %, two below 0.1 %, none from 100 % on."""
    value = abs(share) * 100
    places = 0 if value >= 99.95 else 2 if value < 0.095 else 1
    return f"{value:.{places}f}"


def direction(ratio: float, higher_is_better: bool) -> str:
    """Return "slower" or "faster", from the user's point of view."""
    return "faster" if (ratio > 1.0) == higher_is_better else "slower"


def factor(ratio: float) -> float:
    """Return a ratio as the factor by which it is faster or slower: at least 1 in either direction."""
    return max(ratio, 1.0 / ratio)


def is_multiple(c: BlockComparison) -> bool:
    """Return True if the change is reported as a multiple instead of a percentage: a factor of two or more."""
    return factor(c.ratio) >= FACTOR_FROM


def _share(ratio: float) -> str:
    return f"{percent(ratio - 1)} %" if factor(ratio) < FACTOR_MAX else "many times"


def interval(c: BlockComparison) -> str:
    """Return the interval in words: "95 % CI 5.9 to 7.3 %" or "95 % CI 2.9 to 3.6 times".

    If the interval includes a ratio of 1, each end has a direction: "95 % CI 1.0 % faster to 1.8 % slower".
    """
    ends = sorted((c.low, c.high), key=lambda ratio: abs(ratio - 1.0))
    level = f"{c.level * 100:g} % CI"
    if (c.low - 1.0) * (c.high - 1.0) >= 0.0 and is_multiple(c):
        times = sorted((factor(c.low), factor(c.high)))
        return f"{level} {_digits(times[0])} to {_digits(times[1])} times"
    if (c.low - 1.0) * (c.high - 1.0) >= 0.0:
        return f"{level} {percent(ends[0] - 1)} to {percent(ends[1] - 1)} %"
    better = c.high if c.higher_is_better else c.low
    worse = c.low if c.higher_is_better else c.high
    return f"{level} {_share(better)} faster to {_share(worse)} slower"


def change(c: BlockComparison) -> str:
    """Return the estimate in words: "6.6 % slower", "3.20 times as fast"."""
    if abs(c.ratio - 1.0) < 0.00005:
        return "0.0 % change"
    if is_multiple(c):
        way = direction(c.ratio, c.higher_is_better)
        return f"{_digits(factor(c.ratio))} times as {_PLAIN[way]}"
    return f"{percent(c.ratio - 1)} % {direction(c.ratio, c.higher_is_better)}"


def change_of(ratio: float, low: float | None = None, high: float | None = None, *, higher_is_better: bool) -> str:
    """Return a ratio of a metric in words, with its interval if both ends are known.

    Examples are "3.20 times as fast (2.90 to 3.60)", "6.6 % slower (5.9 to 7.3 %)" and "0.4 % faster (1.0 % slower to
    1.8 % faster)".
    """
    way, multiple = direction(ratio, higher_is_better), factor(ratio) >= FACTOR_FROM
    words = f"{_digits(factor(ratio))} times as {_PLAIN[way]}" if multiple else f"{percent(ratio - 1)} % {way}"
    if low is None or high is None:
        return words
    if (low - 1.0) * (high - 1.0) < 0.0:
        ways = [f"{_share(end)} {direction(end, higher_is_better)}" for end in (low, high)]
        return f"{words} ({ways[0]} to {ways[1]})"
    if multiple:
        ends = sorted((factor(low), factor(high)))
        return f"{words} ({_digits(ends[0])} to {_digits(ends[1])})"
    near, far = sorted((abs(low - 1.0), abs(high - 1.0)))
    return f"{words} ({percent(near)} to {percent(far)} %)"


def deciding_blocks(c: BlockComparison) -> str:
    """Return the number of blocks that would decide, as an interval in words, or why none can be promised."""
    asked = f"detect a difference of {c.threshold * 100:g} %"
    if not least_blocks.is_reachable(c.least_p, c.level):
        return f"a verdict at {c.level * 100:g} % takes at least {c.blocks_least} blocks"
    if c.tell_low is None:
        return f"to {asked} takes over {PROMISED_MOST:,} blocks; less noise would help more"
    most = f"over {PROMISED_MOST:,}" if c.tell_high is None else f"{c.tell_high:,}"
    number = f"{c.tell_low:,}" if c.tell_high == c.tell_low else f"{c.tell_low:,} to {most}"
    return f"to {asked} takes {number} blocks in all"


def is_within(c: BlockComparison) -> bool:
    """Return True if the whole interval is within the threshold."""
    return 1.0 / (1.0 + c.threshold) <= c.low and c.high <= 1.0 + c.threshold


def fails_correction(c: BlockComparison) -> bool:
    """Return True if the interval excludes "no change" but q, corrected for several metrics, is not significant."""
    return c.decision == "unclear" and c.p <= (1.0 - c.level) * (1 + 1e-12) < c.q


def describe(c: BlockComparison) -> str:
    """Return the decision on one metric in words."""
    if c.blocks < 2:
        return f"cannot tell: {c.blocks} of {c.blocks + c.blocks_missing} blocks give this metric"
    if c.decision == "provisional":
        return f"provisional: {change(c)} ({interval(c)}); {deciding_blocks(c)}"
    if c.decision == "same":
        return f"no difference larger than {c.threshold * 100:g} % ({change(c)}, {interval(c)})"
    if fails_correction(c):
        return (
            f"cannot tell: {change(c)} ({interval(c)}), but of several metrics one in "
            f"{round(1 / (1 - c.level))} differs as much by chance (q {c.q:.2g})"
        )
    if c.decision == "unclear":
        return f"cannot tell: {change(c)} ({interval(c)}); {deciding_blocks(c)}"
    nearest = min(abs(math.log(c.low)), abs(math.log(c.high)))
    hedge = ""
    if nearest < math.log1p(c.threshold):
        hedge = f", perhaps by less than {c.threshold * 100:g} %"
    return f"{change(c)} ({interval(c)}){hedge}"
