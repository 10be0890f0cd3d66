"""Result of comparing two arms on one metric; `blocks` computes it and `wording` puts it into words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypedDict

from dbdyno.base.notebook import facts_table

Decision = Literal["faster", "slower", "same", "unclear", "provisional", "no verdict", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockComparison:
    """Comparison of two arms on one metric over the blocks. Ratios are other / base; values are NaN if not defined.

    - `base_value`, `value`: geometric means over the blocks, in the unit of the metric; their ratio is `ratio`.
    - `low`, `high`: t interval of the ratio. `boot_low`, `boot_high`: studentised bootstrap interval over blocks.
    - `p`: two-sided p of the t test. `q`: p after control of the false discovery rate (equal to `p` until `decide` has
      run).
    - `sd_log`: standard deviation of the per-block log ratios. `standard_error`: standard error of their mean.
    - `lag1`: autocorrelation of the log ratios. `inflation`: number of blocks worth one independent block.
      `effective_blocks` = blocks / inflation.
    - `smallest_visible`: smallest difference (ratio minus 1) that these blocks show with 80 % power.
    - `least_p`: least p that chance alone could give with these blocks. `blocks_least`: least number of blocks for the
      level (in each set, if the sets are not paired). See `least_blocks`.
    - `blocks_needed`: number of blocks that show a difference of `threshold` with 80 % power at the estimated spread;
      None above 100,000.
    - `tell_low`, `tell_high`: interval of the total number of blocks that distinguishes a difference of `threshold`
      from none (see `power.blocks_to_tell`); None above 1,000 or if unknown.
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
    boot_low: float = math.nan
    boot_high: float = math.nan
    level: float
    threshold: float
    p: float
    q: float = math.nan
    sd_log: float
    standard_error: float
    blocks: int
    blocks_missing: int = 0
    lag1: float = math.nan
    inflation: float
    effective_blocks: float
    least_p: float
    blocks_least: int
    smallest_visible: float
    blocks_needed: int | None
    tell_low: int | None = None
    tell_high: int | None = None
    decision: Decision = "unclear"
    words: str = ""

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {"decision": self.decision, "ratio": self.ratio, "low": self.low, "high": self.high}
        facts |= {"q": self.q, "blocks": self.blocks, "blocks needed": self.blocks_needed}
        return facts_table(self.words, facts)


class ComparisonRow(TypedDict, total=False):
    """The fields of a `BlockComparison` that an analysis keeps."""

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
