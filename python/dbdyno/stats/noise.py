"""The noise floor: one arm compared with itself, and the differences that this set-up can detect."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from dbdyno.base.errors import StatsError
from dbdyno.stats import power
from dbdyno.stats.blocks import compare_blocks
from dbdyno.stats.comparison import BlockComparison
from dbdyno.stats.wording import interval, percent

#: Differences for which the required number of blocks is reported.
TARGETS = (0.01, 0.02, 0.05, 0.10)


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """Result of an A/A run for one metric.

    - `comparison`: the arm compared with itself; its interval should contain a ratio of 1.
    - `spread`: standard deviation of the per-block ratio, as a share (0.03 is 3 %).
    - `smallest_visible`: the difference that this number of blocks shows with 80 % power, as a share.
    - `blocks_needed`: pairs of a difference and the number of blocks that shows it with 80 % power at the estimated
      spread; None above 100,000.
    - `blocks_to_tell`: pairs of a difference and the interval of the number of blocks that distinguishes it from none,
      which allows for the spread being known from these blocks only.
    - `false_alarm`: True if the interval excludes "no difference"; expected in a share 1 - level of A/A runs.
    """

    comparison: BlockComparison
    spread: float
    smallest_visible: float
    blocks_needed: tuple[tuple[float, int | None], ...]
    blocks_to_tell: tuple[tuple[float, power.BlockRange], ...]
    false_alarm: bool
    words: str


def noise_floor(
    first: ArrayLike,
    second: ArrayLike,
    *,
    higher_is_better: bool,
    level: float = 0.95,
    threshold: float = 0.02,
    targets: tuple[float, ...] = TARGETS,
    seed: int = 0,
    metric: str = "",
    label: str = "",
    unit: str = "",
) -> NoiseFloor:
    """Compute the noise floor from the two labels of an A/A run, each with one value per block in time order.

    Raises:
        StatsError: There are fewer than three usable blocks; a spread from fewer says nothing.
    """
    c = compare_blocks(
        first,
        second,
        higher_is_better=higher_is_better,
        level=level,
        threshold=threshold,
        seed=seed,
        metric=metric,
        label=label,
        unit=unit,
    )
    if c.blocks < 3:
        raise StatsError(
            f"{c.blocks} usable blocks are too few for a noise floor", next_step="run at least 3 blocks, preferably 20"
        )
    needed = tuple(
        (target, power.blocks_needed(c.sd_log, target, level=level, inflation=c.inflation)) for target in targets
    )
    tell = tuple(
        (
            target,
            power.blocks_to_tell(c.sd_log, c.effective_blocks, target, level=level, inflation=c.inflation),
        )
        for target in targets
    )
    false_alarm = c.p <= 1.0 - level
    return NoiseFloor(
        comparison=c,
        spread=c.sd_log,
        smallest_visible=c.smallest_visible,
        blocks_needed=needed,
        blocks_to_tell=tell,
        false_alarm=false_alarm,
        words=_words(c, wanted_blocks(tell), false_alarm),
    )


def wanted_blocks(ranges: tuple[tuple[float, power.BlockRange], ...]) -> str:
    """Return, in words, the number of blocks needed for each difference; empty if none is within reach."""
    known = [(target, blocks) for target, blocks in ranges if blocks.low is not None]
    return ", ".join(f"{_range(blocks)} for {target * 100:g} %" for target, blocks in known)


def _range(blocks: power.BlockRange) -> str:
    if blocks.high is None:
        return f"{blocks.low:,} or more"
    return f"{blocks.low:,}" if blocks.high == blocks.low else f"{blocks.low:,} to {blocks.high:,}"


def _words(c: BlockComparison, wants: str, false_alarm: bool) -> str:
    text = (
        f"{c.label or 'The metric'} against itself: {interval(c)}; {c.blocks} blocks can detect a "
        f"difference of {percent(c.smallest_visible)} % or more (80 % power)"
    )
    if wants:
        text += f"; blocks needed: {wants}"
    if false_alarm:
        text += (
            f". Equal arms appear different: expected in {(1 - c.level) * 100:g} % of such runs; "
            "if a second run also differs, the order or the machine favours one arm"
        )
    return text + "."
