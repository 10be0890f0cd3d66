"""From comparisons of metrics to a verdict: which metric decides, and the correction for multiple comparisons.

The headline metric is fixed before the run: throughput in a closed loop, the median latency in an open loop, unless the
plan names another one. It is one question asked once, so it is tested at the full level; with several arms against one
baseline, its p values are adjusted over the arms. All other metrics of an arm are adjusted together. The adjustment is
Benjamini and Hochberg's (1995): of all metrics called faster or slower, an expected share of at most 1 - level is
false; if nothing differs at all, that is the probability of any false call.

The verdict of an arm is withheld if its comparison does not answer the question, for example because half of its
transactions failed: its decision is "no verdict", or "failed" if no transaction succeeded, and its sentence is the
reason. Its estimates are kept without a decision, and it takes no part in the adjustment.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dbdyno.base.errors import StatsError
from dbdyno.stats.comparison import BlockComparison, Decision
from dbdyno.stats.wording import change, deciding_blocks, interval, is_multiple, is_within


@dataclass(frozen=True, slots=True)
class WithheldVerdict:
    """Reason why an arm has no verdict, as a sentence; `decision` is "no verdict" or "failed"."""

    reason: str
    decision: Decision = "no verdict"


@dataclass(frozen=True, slots=True)
class ArmVerdict:
    """Verdict on one arm against the baseline.

    Attributes:
        arm: Name of the arm.
        decision: Decision on `headline`, or "no verdict" or "failed" if the verdict is withheld.
        headline: Comparison on the headline metric.
        comparisons: Comparisons on all metrics with their q values, in the order in which they were passed.
        sentence: The verdict as a sentence, or why there is none.
    """

    arm: str
    decision: Decision
    headline: BlockComparison
    comparisons: tuple[BlockComparison, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Answer to the question of a run: a decision, its sentence, further sentences, and the verdicts on all arms."""

    decision: Decision
    headline: str
    sentences: tuple[str, ...]
    arms: tuple[ArmVerdict, ...]


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Return q values in the order of `p` (Benjamini and Hochberg 1995; R's p.adjust, method "BH").

    A q value is the least of p[j] * m / rank(j) over all p[j] >= p[i]. NaN stays NaN and is not counted in m.
    """
    known = sorted((value, i) for i, value in enumerate(p) if not math.isnan(value))
    q = [math.nan] * len(p)
    least = 1.0
    for rank in range(len(known), 0, -1):
        value, i = known[rank - 1]
        least = min(least, value * len(known) / rank)
        q[i] = least
    return q


def decide(
    arms: Mapping[str, Sequence[BlockComparison]],
    *,
    baseline: str,
    headline: str,
    bases: Mapping[str, str] | None = None,
    withheld: Mapping[str, WithheldVerdict] | None = None,
) -> Verdict:
    """Return the verdict over all arms.

    With several arms the verdict is the best arm's if one is faster, else the worst arm's if one is slower. Else it is
    the first of "unclear", "provisional", "same", "failed" and "no verdict" that an arm has.

    Args:
        arms: Comparisons of each arm except the baseline, one per metric.
        baseline: Name of the baseline.
        headline: Name of the metric that decides.
        bases: Name of the arm with which an arm was compared, if that is not the baseline.
        withheld: Arms that get no verdict, with the reason.

    Raises:
        StatsError: There are no arms, or an arm lacks the headline metric.
    """
    if not arms:
        raise StatsError("there is no arm to compare", next_step="give the plan at least two arms")
    leads = {}
    for arm, comparisons in arms.items():
        found = [c for c in comparisons if c.metric == headline]
        if not found:
            known = ", ".join(c.metric for c in comparisons) or "none"
            raise StatsError(f"arm {arm!r} has no metric {headline!r}", next_step=f"use one of: {known}")
        leads[arm] = found[0]
    judged = {arm: lead for arm, lead in leads.items() if arm not in (withheld or {})}
    lead_q = dict(zip(judged, benjamini_hochberg([c.p for c in judged.values()]), strict=True))
    verdicts = tuple(
        _arm(arm, comparisons, leads[arm], lead_q[arm], (bases or {}).get(arm, baseline))
        if arm in judged
        else _withheld_verdict(arm, comparisons, leads[arm], (withheld or {})[arm])
        for arm, comparisons in arms.items()
    )
    speaker = _speaker(verdicts)
    sentences = [v.sentence for v in verdicts]
    for verdict in verdicts:
        if verdict.arm in judged:
            sentences += _others(verdict, len(verdicts) > 1)
    return Verdict(speaker.decision, speaker.sentence, tuple(sentences), verdicts)


def _arm(
    arm: str,
    comparisons: Sequence[BlockComparison],
    lead: BlockComparison,
    lead_q: float,
    baseline: str,
) -> ArmVerdict:
    from dbdyno.stats.blocks import decide_metric

    others = [c for c in comparisons if c is not lead]
    qs = iter(benjamini_hochberg([c.p for c in others]))
    decided = tuple(decide_metric(c, lead_q if c is lead else next(qs)) for c in comparisons)
    headline = next(d for d, c in zip(decided, comparisons, strict=True) if c is lead)
    sentence = _sentence(arm, baseline, headline)
    return ArmVerdict(arm, headline.decision, headline, decided, sentence)


def _withheld_verdict(
    arm: str, comparisons: Sequence[BlockComparison], lead: BlockComparison, withheld: WithheldVerdict
) -> ArmVerdict:
    """Return the verdict on an arm whose verdict is withheld: its estimates without a decision."""
    words = "no verdict" if withheld.decision == "no verdict" else "every transaction failed"
    bare = {id(c): replace(c, decision=withheld.decision, words=words) for c in comparisons}
    return ArmVerdict(arm, withheld.decision, bare[id(lead)], tuple(bare.values()), withheld.reason)


def _benefit(verdict: ArmVerdict) -> float:
    """Return the log ratio signed so that a value above zero is better."""
    c = verdict.headline
    if c.blocks < 1:
        return 0.0
    return math.log(c.ratio) * (1 if c.higher_is_better else -1)


def _speaker(verdicts: Sequence[ArmVerdict]) -> ArmVerdict:
    """Return the arm whose verdict becomes the verdict of the run.

    Raises:
        StatsError: There are no arms.
    """
    faster = [v for v in verdicts if v.decision == "faster"]
    if faster:
        return max(faster, key=_benefit)
    slower = [v for v in verdicts if v.decision == "slower"]
    if slower:
        return min(slower, key=_benefit)
    for decision in ("unclear", "provisional", "same", "failed", "no verdict"):
        found = [v for v in verdicts if v.decision == decision]
        if found:
            return found[0]
    raise StatsError("there is no arm to compare", next_step="give the plan at least two arms")


def _blocks(c: BlockComparison) -> str:
    return f"{c.blocks} block" if c.blocks == 1 else f"{c.blocks} blocks"


def _sentence(arm: str, baseline: str, c: BlockComparison) -> str:
    if c.blocks < 2:
        return (
            f"Cannot tell {arm} from {baseline} in {c.label}: "
            f"{c.blocks} of {c.blocks + c.blocks_missing} blocks have a value."
        )
    figures = f"{interval(c)}, {_blocks(c)}"
    if c.decision == "same":
        return (
            f"{arm} and {baseline} differ by no more than {c.threshold * 100:g} % in {c.label} "
            f"({change(c)}, {figures})."
        )
    if c.decision == "unclear":
        return (
            f"Cannot tell whether {arm} is faster or slower than {baseline} in {c.label} "
            f"({change(c)}, {figures}); {deciding_blocks(c)}."
        )
    if c.decision == "provisional" and is_within(c):
        return f"{arm} and {baseline} look alike in {c.label} ({change(c)}, {figures}), but {deciding_blocks(c)}."
    hedge = c.words.partition("), ")[2]
    than = "as" if is_multiple(c) else "than"
    if c.decision == "provisional":
        return f"{arm} looks {change(c)} {than} {baseline} in {c.label} ({figures}), but {deciding_blocks(c)}."
    return f"{arm} is {change(c)} {than} {baseline} in {c.label} ({figures}){', ' + hedge if hedge else ''}."


def _others(verdict: ArmVerdict, name_it: bool) -> list[str]:
    """Return sentences on the other metrics that differ; those that contradict the headline come first with a "But"."""
    opposite = {"faster": "slower", "slower": "faster"}.get(verdict.decision)
    shown = [
        c for c in verdict.comparisons if c.metric != verdict.headline.metric and c.decision in ("faster", "slower")
    ]
    shown.sort(key=lambda c: c.decision != opposite)
    prefix = f"{verdict.arm}, " if name_it else ""
    return [f"{'But ' if c.decision == opposite else ''}{prefix}{c.label}: {c.words}." for c in shown]
