"""Verdict on an A/A run: the differences that this set-up can detect, and what is needed to detect smaller ones."""

from __future__ import annotations

from dbdyno.base.errors import StatsError
from dbdyno.study.analysis.contract.rows import JudgeRow, VerdictRow
from dbdyno.study.analysis.measured.measures import Measures


def noise_verdict(measures: Measures, judge: JudgeRow, headline: str, *, in_virtual_time: bool = False) -> VerdictRow:
    """Return the noise floor: of the headline metric first, then of the other metrics.

    A model has no noise floor: its two arms must have equal times.
    """
    from dbdyno.stats.metrics import METRICS
    from dbdyno.stats.noise import noise_floor, wanted_blocks
    from dbdyno.stats.wording import percent

    if in_virtual_time:
        return _equal(measures)
    floors = {}
    for metric in METRICS:
        base, again = measures.metric(metric.name)
        try:
            floors[metric.name] = noise_floor(
                base,
                again,
                higher_is_better=metric.higher_is_better,
                level=judge["level"],
                threshold=judge["threshold"],
                metric=metric.name,
                label=metric.label,
                unit=metric.unit,
            )
        except StatsError:
            continue
    if headline not in floors:
        return {
            "decision": "noise floor",
            "headline": "Too few blocks for a noise floor.",
            "sentences": ["Run at least 3 blocks, preferably 20."],
        }
    main = floors[headline]
    needed = wanted_blocks(main.blocks_to_tell)
    words = (
        f"This set-up can detect a difference of {percent(main.smallest_visible)} % or more in "
        f"{main.comparison.label} ({main.comparison.blocks} blocks, 80 % power)"
    )
    others = [floor.words for name, floor in floors.items() if name != headline]
    return {
        "decision": "noise floor",
        "headline": words + (f"; blocks needed: {needed}." if needed else "."),
        "sentences": [main.words, *others],
    }


def _equal(measures: Measures) -> VerdictRow:
    """Return the verdict on whether an arm and its twin, which use the same random numbers, had the same times."""
    import numpy as np

    base, again = measures.arms[0].pooled_latencies(), measures.arms[1].pooled_latencies()
    if np.array_equal(base, again):
        return {
            "decision": "noise floor",
            "headline": "Both arms took the same time to the nanosecond, as they must: "
            f"{base.size} times in {len(measures.arms[0].blocks)} blocks.",
            "sentences": [
                "In virtual time the arms of a block draw the same random numbers, so a model has "
                "no noise of its own. How many blocks a difference between arms needs depends on how much "
                "it varies between replications; a run shows this number for each metric."
            ],
        }
    return {
        "decision": "unclear",
        "headline": "Two identical arms differ on a model, where they must be equal.",
        "sentences": ["This is a defect of dbdyno: please report it."],
    }
