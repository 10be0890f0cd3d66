"""What a comparison of two arms found for one metric: made by `blocks`, worded by `words`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict

Decision = Literal["faster", "slower", "same", "unclear", "provisional", "no verdict", "failed"]


@dataclass(frozen=True, slots=True)
class BlockComparison:
    """One metric of two arms over the blocks. Ratios are other / base; NaN where not defined.

    - `base_value`, `value`: geometric means over the blocks (unit of the metric); their ratio is
      `ratio`.
    - `low`, `high`: t interval of the ratio; `boot_low`, `boot_high`: studentised bootstrap over
      blocks.
    - `p`: two-sided t; `q`: after false-discovery control (equals `p` until `decide` has run).
    - `sd_log`: standard deviation of the per-block log ratios; `standard_error`: of their mean.
    - `lag1`: autocorrelation of the log ratios; `inflation`: blocks that are worth one independent
      block; `effective_blocks` = blocks / inflation.
    - `smallest_visible`: the ratio minus 1 that these blocks show with 80 % power.
    - `least_p`: the least p that chance alone could give with these blocks; `blocks_least`: how many
      it takes for the level (of sets that are not paired: in each). See `chance`.
    - `blocks_needed`: blocks that show a difference of `threshold` with 80 % power, by the spread as
      estimated (None: over 100,000).
    - `tell_low`, `tell_high`: blocks in all that tell a difference of `threshold` from none (see
      `power.blocks_to_tell`; None: over 1,000, or not known).
    """

    metric: str
    label: str
    unit: str
    higher_is_better: bool
    base_value: float
    value: float
    ratio: float
    low: float
    high: float
    boot_low: float
    boot_high: float
    level: float
    threshold: float
    p: float
    q: float
    sd_log: float
    standard_error: float
    blocks: int
    blocks_missing: int
    lag1: float
    inflation: float
    effective_blocks: float
    least_p: float
    blocks_least: int
    smallest_visible: float
    blocks_needed: int | None
    tell_low: int | None
    tell_high: int | None
    decision: Decision
    words: str


class ComparisonRow(TypedDict, total=False):
    """What an analysis keeps of a comparison."""

    metric: str
    label: str
    unit: str
    higher_is_better: bool
    base_value: float
    value: float
    ratio: float
    low: float
    high: float
    boot_low: float
    boot_high: float
    level: float
    p: float
    q: float
    blocks: int
    decision: str
    words: str
    smallest_visible: float
    blocks_needed: int | None
    tell_low: int | None
    tell_high: int | None
