"""Power of the comparison over blocks: the number of blocks that shows a difference of a given size.

The t test on per-block log ratios is a one-sample test, so its power at a true log ratio d, spread s and n blocks is
that of the noncentral t with n - 1 degrees of freedom and noncentrality d sqrt(n) / s (Cohen 1988, chapter 2).
Everything here works on the log of the ratio.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dbdyno.stats.distributions import chi2_quantile, normal_quantile, t_power, t_quantile
from dbdyno.stats.least_blocks import PROMISED_MOST

#: Largest number of blocks that is reported; beyond it the result is None.
BLOCKS_MOST = 100_000
DEFAULT_POWER = 0.8


def power_of(blocks: float, sd_log: float, effect: float, *, level: float = 0.95) -> float:
    """Return the power to show a true difference `effect` (0.05 is 5 %), two-sided at `level`.

    It is 0 below two blocks, and 1 if `sd_log` is 0.

    Args:
        blocks: Number of blocks.
        sd_log: Standard deviation of the per-block log ratios.
        effect: True difference, as a share.
        level: Confidence level of the test.
    """
    if blocks < 2:
        return 0.0
    if sd_log <= 0.0:
        return 1.0
    away = math.log1p(effect) * math.sqrt(blocks) / sd_log
    return t_power(blocks - 1, away, t_quantile(blocks - 1, 0.5 + level / 2))


def smallest_visible(
    blocks: float, standard_error: float, *, level: float = 0.95, power: float = DEFAULT_POWER
) -> float:
    """Return the smallest difference (ratio minus 1) that a number of blocks shows with `power`; NaN up to one block.

    It is exp((t[1 - a/2] + t[power]) se) - 1.

    Args:
        blocks: Effective number of blocks.
        standard_error: Standard error of the mean log ratio.
        level: Confidence level of the test.
        power: Probability of showing the difference.
    """
    if blocks <= 1 or math.isnan(standard_error):
        return math.nan
    df = blocks - 1
    reach = t_quantile(df, 0.5 + level / 2) + t_quantile(df, power)
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
    """Return the least number of blocks that shows a difference `effect` (0.05 is 5 %) with `power`.

    The result is None above 100,000, or if `sd_log` or `inflation` is NaN. `inflation` (at least 1) is the number of
    blocks that are worth one independent block.
    """
    if math.isnan(sd_log) or math.isnan(inflation):
        return None

    def enough(blocks: int) -> bool:
        return power_of(blocks, sd_log, effect, level=level) >= power

    too_few, high, step = 1, _guess(sd_log, effect, level, power), 1
    while not enough(high):
        if high == BLOCKS_MOST:
            return None
        too_few, high, step = high, min(high + step, BLOCKS_MOST), 2 * step
    while high - too_few > 1:
        middle, step = max(high - step, (too_few + high) // 2), 2 * step
        too_few, high = (too_few, middle) if enough(middle) else (middle, high)
    needed = math.ceil(high * inflation)
    return needed if needed <= BLOCKS_MOST else None


def _guess(sd_log: float, effect: float, level: float, power: float) -> int:
    """Return an estimate of the least number of blocks by the normal distribution, from which the search starts."""
    away = abs(math.log1p(effect))
    if away == 0.0:
        return BLOCKS_MOST
    reach = (normal_quantile(0.5 + level / 2) + normal_quantile(power)) * sd_log / away
    return max(2, math.ceil(min(float(BLOCKS_MOST), reach * reach + 2)))


#: Power at which both outcomes are decided: a difference is shown with 90 %, and the absence of one (two one-sided
#: tests, each with 90 %) with at least 80 %.
TELLING_POWER = 0.9


@dataclass(frozen=True, slots=True)
class BlockRange:
    """Range of the number of blocks that a decision needs, given an uncertain spread; None for an end above 1,000."""

    low: int | None
    high: int | None


def blocks_to_tell(
    sd_log: float, blocks: float, effect: float, *, level: float = 0.95, inflation: float = 1.0
) -> BlockRange:
    """Return the total number of blocks that distinguishes a difference `effect` from none in four of five runs.

    This holds whether or not there is a difference. The spread is known only from `blocks` (effective) blocks, so the
    result is an interval: the interval of the variance, (n - 1) s^2 over the chi-square quantiles at `level`, converted
    to numbers of blocks. In a share `level` of cases it contains the number for the true spread.
    """
    df = blocks - 1
    if df <= 0 or not sd_log >= 0.0:
        return BlockRange(None, None)
    ends = (0.5 + level / 2, 0.5 - level / 2)
    spreads = [sd_log * math.sqrt(df / chi2_quantile(df, at)) for at in ends]
    numbers = [blocks_needed(sd, effect, level=level, power=TELLING_POWER, inflation=inflation) for sd in spreads]
    low, high = (number if number is not None and number <= PROMISED_MOST else None for number in numbers)
    return BlockRange(low, high)
