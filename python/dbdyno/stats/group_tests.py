"""Tests for differences between groups, from descriptions: two groups, several groups, or published figures alone.

If there are blocks, the answer comes from them (`compare_in_blocks`): waits of one session depend on each other, blocks
much less. The classical tests over single values are shown beside it, each with the note that it assumes independent
values. In every test of two groups the sign is that of the second minus the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dbdyno.base.errors import StatsError
from dbdyno.stats.blocks import compare_blocks
from dbdyno.stats.classical import (
    INFINITE,
    ClassicalTest,
    kolmogorov_smirnov_of,
    mann_whitney_of,
    welch,
)
from dbdyno.stats.description import BlockValue, Description, Group
from dbdyno.stats.distributions import chi2_log10_p, f_log10_p
from dbdyno.stats.means import RatioEstimate
from dbdyno.stats.samples import Moments
from dbdyno.stats.unpaired import compare_unpaired
from dbdyno.stats.wording import percent

NOTE = "assumes independent values"


def compare_groups(described: Description) -> list[ClassicalTest]:
    """Return the classical tests between all groups.

    These are Welch, Mann-Whitney and Kolmogorov-Smirnov for two groups; one-way and Welch's analysis of variance and
    Kruskal-Wallis for more. A test that is not defined for the values is returned without figures, with the reason as
    its note.

    Raises:
        StatsError: There are fewer than two groups with values, or one group has none.
    """
    groups = [group for group in described.groups if group.n]
    if len(groups) < 2:
        raise StatsError(
            f"a test needs two groups, found {len(groups)}",
            next_step="name a grouping column with --by, or give two operands",
        )
    if len(groups) != len(described.groups):
        names = ", ".join(group.name for group in described.groups if not group.n)
        raise StatsError(f"there are no values in the group {names}", next_step="leave the group out with --where")
    if len(groups) == 2:
        return _two(described, *groups)
    return [
        _where_defined("one-way F", lambda: one_way_anova(groups)),
        _where_defined("Welch F", lambda: welch_anova(groups)),
        _where_defined("Kruskal-Wallis H", lambda: kruskal_wallis(described)),
    ]


def _where_defined(name: str, test: Callable[[], ClassicalTest]) -> ClassicalTest:
    """Return the result of the test, or its name with the reason why it is not defined."""
    try:
        return test()
    except StatsError as error:
        return ClassicalTest(name, math.nan, note=f"not defined: {error.message}")


def _two(described: Description, a: Group, b: Group) -> list[ClassicalTest]:
    found = [_where_defined("Welch t", lambda: welch_of(a, b, level=described.level))]
    ranks = described.ranks
    if ranks is not None:
        u = mann_whitney_of(ranks.u_doubled, a.n, b.n, float(ranks.tie_term))
        effect = f"a value of {b.name} is larger in {100 * u.effect_value:.1f} % of the pairs"
        tied = np.array(ranks.tied, dtype=np.int64) if ranks.tied else None
        ks = kolmogorov_smirnov_of(max(ranks.above, ranks.below), a.n, b.n, tied)
        found += [replace(u, effect=effect), ks]
    return [test if math.isnan(test.statistic) else replace(test, note=NOTE) for test in found]


def welch_of(a: Group, b: Group, *, level: float = 0.95) -> ClassicalTest:
    """Compare the means of two groups by Welch's t, b minus a, from the offsets of their means.

    Raises:
        StatsError: The test is not defined for these groups (see `classical.welch`).
    """
    moments = (Moments(group.n, group.offset, group.sd) for group in (a, b))
    found = welch(*moments, level=level)
    pooled = math.sqrt((a.variance + b.variance) / 2)
    effect = f"mean difference {found.effect_value:.6g} (Cohen's d {found.effect_value / pooled:.3f})"
    return replace(found, effect=effect, note=NOTE)


def welch_from_summary(
    first: tuple[int, float, float], second: tuple[int, float, float], *, level: float = 0.95
) -> ClassicalTest:
    """Compare two groups by Welch's t from published figures alone: (n, mean, sd) of each, second minus first.

    Raises:
        StatsError: A group has fewer than two values or a negative or infinite figure, or neither varies.
    """
    for n, mean, sd in (first, second):
        if n < 2 or sd < 0 or not math.isfinite(mean + sd):
            raise StatsError(
                f"n = {n}, mean = {mean}, sd = {sd} is not a valid summary of a sample",
                next_step="give n of at least 2, the mean, and the standard deviation",
            )
    found = welch(Moments(*first), Moments(*second), level=level)
    pooled = math.sqrt((first[2] ** 2 + second[2] ** 2) / 2)
    effect = f"mean difference {found.effect_value:.6g} (Cohen's d {found.effect_value / pooled:.3f})"
    return replace(found, effect=effect, note=NOTE)


def one_way_anova(groups: Sequence[Group]) -> ClassicalTest:
    """Compare groups by one-way analysis of variance: F of the spread between groups over that within (Fisher 1925).

    `effect_value` is eta squared, the share of the squared deviations that is between the groups.

    Raises:
        StatsError: Values are infinite, do not vary, or no group has two of them.
    """
    n, k = sum(group.n for group in groups), len(groups)
    grand = math.fsum(group.n * group.offset for group in groups) / n
    between = math.fsum(group.n * (group.offset - grand) ** 2 for group in groups)
    within = math.fsum(group.m2 for group in groups)
    if not math.isfinite(between + within):
        raise StatsError(INFINITE)
    if n <= k or not between + within > 0:
        raise StatsError(
            "the values do not vary, or no group has two of them", next_step="choose another column, or larger groups"
        )
    f = (between / (k - 1)) / (within / (n - k)) if within > 0 else math.inf
    share = between / (between + within)
    return ClassicalTest(
        test="one-way F",
        statistic=f,
        df=float(k - 1),
        log10_p=f_log10_p(f, k - 1, n - k),
        effect=f"{100 * share:.3g} % of the squared deviations are between the groups",
        effect_value=share,
        note=f"{NOTE} of equal spread; {n - k} degrees of freedom within",
    )


def welch_anova(groups: Sequence[Group]) -> ClassicalTest:
    """Compare groups by Welch's one-way test, which does not assume equal spreads (Welch 1951).

    `effect_value` is the degrees of freedom within the groups.

    Raises:
        StatsError: Values are infinite, or a group has fewer than two values or does not vary.
    """
    if not all(group.has_moments for group in groups):
        raise StatsError(INFINITE)
    if any(group.n < 2 or not group.variance > 0 for group in groups):
        raise StatsError(
            "the test needs at least two values in each group, and values that vary",
            next_step="leave small groups out with --where",
        )
    weights = [group.n / group.variance for group in groups]
    total, k = math.fsum(weights), len(groups)
    centre = math.fsum(w * g.offset for w, g in zip(weights, groups, strict=True)) / total
    spread = math.fsum(w * (g.offset - centre) ** 2 for w, g in zip(weights, groups, strict=True))
    rest = math.fsum((1 - w / total) ** 2 / (g.n - 1) for w, g in zip(weights, groups, strict=True))
    f = (spread / (k - 1)) / (1 + 2 * (k - 2) / (k * k - 1) * rest)
    within = (k * k - 1) / (3 * rest)
    effect = f"{within:.6g} degrees of freedom within"
    return ClassicalTest("Welch F", f, float(k - 1), f_log10_p(f, k - 1, within), effect, within, note=NOTE)


def kruskal_wallis(described: Description) -> ClassicalTest:
    """Compare groups by Kruskal and Wallis's H (1952) over mid-ranks, corrected for ties, with p from chi squared.

    `effect_value` is epsilon squared, H / (n - 1).

    Raises:
        StatsError: The description has no rank sums, or the values do not vary.
    """
    groups, ranks = described.groups, described.ranks
    if ranks is None or len(ranks.sums_doubled) != len(groups):
        raise StatsError("this description contains no rank sums")
    n = sum(group.n for group in groups)
    # Subtract the expected rank sum first, so that the digits of the difference are kept.
    apart = [(doubled - group.n * (n + 1)) / 2 for doubled, group in zip(ranks.sums_doubled, groups, strict=True)]
    h = 12 / (n * (n + 1)) * math.fsum(a * a / g.n for a, g in zip(apart, groups, strict=True))
    tied = 1 - ranks.tie_term / (n**3 - n)
    if tied <= 0:
        raise StatsError("the values do not vary", next_step="choose another column")
    h /= tied
    log10_p, share = chi2_log10_p(h, len(groups) - 1), h / (n - 1)
    return ClassicalTest(
        "Kruskal-Wallis H", h, float(len(groups) - 1), log10_p, f"epsilon squared {share:.3g}", share, note=NOTE
    )


@dataclass(frozen=True)
class GroupComparison(RatioEstimate):
    """Comparison of two groups over blocks on one statistic (`mean`, `p50`, ...): the second group over the first.

    Attributes:
        metric: Name of the statistic.
        first: Its value in the first group.
        second: Its value in the second group.
        blocks: Number of pairs of blocks if `paired`, else the smaller number of blocks of a group.
        paired: True if blocks that hold both groups were compared.
        sentence: The answer as a sentence.
    """

    metric: str
    first: float
    second: float
    blocks: int
    paired: bool
    sentence: str


def compare_in_blocks(described: Description, *, randomised: bool = False) -> list[GroupComparison]:
    """Compare two groups block by block: the mean, and each quantile from the median up that the blocks support.

    Blocks that hold both groups are pairs. If there are fewer than two such blocks, the blocks of one group are
    compared with the blocks of the other (Welch's t on the logs).

    Args:
        described: Description of exactly two groups with block values; otherwise the result is empty.
        randomised: True if the order of the groups was randomised in each block. Otherwise the interval is widened by
            the blocks' autocorrelation.

    Returns:
        One comparison per statistic whose block values are all positive, if each group has two blocks or more.
    """
    if len(described.groups) != 2:
        return []
    by_group: tuple[dict[str, BlockValue], dict[str, BlockValue]] = ({}, {})
    for value in described.blocks:
        by_group[value.group][value.block] = value
    names = [group.name for group in described.groups]
    metrics = [("mean", None), *((f"p{q * 100:.10g}", q) for q in _supported_quantiles(described))]
    answers = []
    for metric, q in metrics:
        a, b = ({k: v.mean if q is None else v.quantiles[q] for k, v in g.items()} for g in by_group)
        if min(len(a), len(b)) >= 2 and min(*a.values(), *b.values()) > 0:
            answers.append(_metric_test(metric, a, b, names, described.level, randomised))
    return answers


def _supported_quantiles(described: Description) -> list[float]:
    """Return the quantiles from the median up that have at least ten values above them in every block."""
    if not described.blocks:
        return []
    least = min(value.n for value in described.blocks)
    known = described.blocks[0].quantiles
    return [q for q in known if q >= 0.5 and least * (1 - q) >= 10 * (1 - 1e-9)]


def _metric_test(
    metric: str,
    a: dict[str, float],
    b: dict[str, float],
    names: list[str],
    level: float,
    randomised: bool,
) -> GroupComparison:
    shared = [block for block in a if block in b]
    paired = len(shared) >= 2
    if paired:
        found = compare_blocks(
            [a[block] for block in shared],
            [b[block] for block in shared],
            higher_is_better=False,
            level=level,
            randomised=randomised,
            resamples=0,
        )
    else:
        found = compare_unpaired(
            list(a.values()),
            list(b.values()),
            higher_is_better=False,
            level=level,
            in_order=not randomised,
        )
    values = (found.base_value, found.value, found.ratio, found.low, found.high, found.p)
    return _answer(metric, values, found.blocks, paired, names, level)


def _answer(
    metric: str,
    values: tuple[float, float, float, float, float, float],
    blocks: int,
    paired: bool,
    names: list[str],
    level: float,
) -> GroupComparison:
    first, second, ratio, low, high, p = values
    kind = f"{blocks} {'blocks' if paired else 'blocks or more in each, not paired'}"
    span = f"{level * 100:g} % CI {_change(low)} to {_change(high)}, {kind}"
    if low > 1.0 or high < 1.0:
        word = "higher" if ratio > 1 else "lower"
        sentence = f"{metric} of {names[1]} is {percent(ratio - 1)} % {word} than of {names[0]}"
    else:
        sentence = f"cannot tell the {metric} of {names[1]} from that of {names[0]}"
        sentence += f": {_change(ratio)}"
    return GroupComparison(ratio, low, high, p, metric, first, second, blocks, paired, f"{sentence} ({span})")


def _change(ratio: float) -> str:
    sign = "+" if ratio >= 1 else "-"
    return f"{sign}{percent(ratio - 1)} %"
