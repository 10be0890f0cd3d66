"""How many blocks show how small a difference.

The t test on per-block log ratios is a one-sample test, so its power at a true log ratio d, spread
s and n blocks is that of the noncentral t with n - 1 degrees of freedom and noncentrality d
sqrt(n) / s (Cohen 1988, chapter 2). Everything here works on the log of the ratio.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

#: Beyond this number of blocks the answer is "not affordable" (None).
BLOCKS_MOST = 100_000
DEFAULT_POWER = 0.8
#: Points of the Gauss-Legendre rule; 128 are good for five digits.
_NODES = 128


@cache
def _rule() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places and weights of the Gauss-Legendre rule on 0..1."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1) / 2, weights / 2


@lru_cache(maxsize=4096)
def _spreads(df: float) -> NDArray[np.float64]:
    """Estimated over true spread at the places of the rule: quantiles of the chi distribution."""
    from scipy import special

    spreads: NDArray[np.float64] = np.sqrt(2.0 * special.gammaincinv(df / 2, _rule()[0]) / df)
    return spreads


def power_of(blocks: float, sd_log: float, effect: float, *, level: float = 0.95) -> float:
    """Power to show a true difference `effect` (0.05 is 5 %) with `blocks` blocks whose log ratios
    have standard deviation `sd_log`; two-sided at `level`."""
    from scipy import special

    if blocks < 2:
        return 0.0
    if sd_log <= 0.0:
        return 1.0
    df = blocks - 1
    away = math.log1p(effect) * math.sqrt(blocks) / sd_log
    critical = float(special.stdtrit(df, 0.5 + level / 2))
    # The noncentral t is a normal over an estimated spread: average over that spread, which stays
    # accurate where the library's series does not.
    weights, spread = _rule()[1], _spreads(df)
    shown = special.ndtr(away - critical * spread) + special.ndtr(-away - critical * spread)
    return float(np.dot(weights, shown))


def smallest_visible(
    blocks: float, standard_error: float, *, level: float = 0.95, power: float = DEFAULT_POWER
) -> float:
    """The ratio minus 1 that `blocks` (effective) blocks show with `power`, given the standard
    error of the mean log ratio: exp((t[1 - a/2] + t[power]) se) - 1. NaN below two blocks."""
    from scipy import special

    if blocks <= 1 or math.isnan(standard_error):
        return math.nan
    df = blocks - 1
    reach = float(special.stdtrit(df, 0.5 + level / 2) + special.stdtrit(df, power))
    try:
        return math.expm1(reach * standard_error)
    except OverflowError:
        return math.inf


def blocks_needed(
    sd_log: float,
    effect: float,
    *,
    level: float = 0.95,
    power: float = DEFAULT_POWER,
    inflation: float = 1.0,
) -> int | None:
    """The least number of blocks that shows a difference `effect` (0.05 is 5 %) with `power`.

    `inflation` (at least 1) is the number of blocks that are worth one independent block. None when
    more than 100,000 would be needed, or when `sd_log` is NaN.
    """
    if math.isnan(sd_log) or math.isnan(inflation):
        return None

    def enough(blocks: int) -> bool:
        return power_of(blocks, sd_log, effect, level=level) >= power

    if not enough(BLOCKS_MOST):
        return None
    too_few, high = 1, 2
    while not enough(high):
        too_few, high = high, high * 2
    while high - too_few > 1:
        middle = (too_few + high) // 2
        too_few, high = (too_few, middle) if enough(middle) else (middle, high)
    needed = math.ceil(high * inflation)
    return needed if needed <= BLOCKS_MOST else None


#: Beyond this number of blocks no promise is made: less noise helps more than more blocks.
PROMISED_MOST = 1_000
#: Power at which both ends of a question are met: a difference is shown with 90 %, and none is
#: shown to be none (two one-sided tests, each with 90 %) with at least 80 %.
TELLING_POWER = 0.9


@dataclass(frozen=True, slots=True)
class BlockRange:
    """How many blocks a question takes, from the least to the most that the spread allows. None:
    over 1,000."""

    low: int | None
    high: int | None


def blocks_to_tell(
    sd_log: float, blocks: float, effect: float, *, level: float = 0.95, inflation: float = 1.0
) -> BlockRange:
    """The number of blocks, in all, that tell a difference `effect` from none in four of five runs,
    whichever is true.

    The spread is known from `blocks` (effective) blocks only, so the number is an interval: that of
    the variance, (n - 1) s^2 over the chi-square quantiles at `level`, put through the number of
    blocks. In a share `level` of cases the number for the true spread lies in it.
    """
    from scipy import special

    df = blocks - 1
    if df <= 0 or not sd_log >= 0.0:
        return BlockRange(None, None)
    ends = (0.5 + level / 2, 0.5 - level / 2)
    spreads = [sd_log * math.sqrt(df / (2.0 * float(special.gammaincinv(df / 2, at)))) for at in ends]
    numbers = [blocks_needed(sd, effect, level=level, power=TELLING_POWER, inflation=inflation) for sd in spreads]
    low, high = (number if number is not None and number <= PROMISED_MOST else None for number in numbers)
    return BlockRange(low, high)
