"""The verdict of an A/A run: what this set-up can see, and what it would take to see more."""

from __future__ import annotations

from typing import Any

from dbdyno.errors import StatsError
from dbdyno.study.measures import Measures


def noise_verdict(measures: Measures, judge: dict[str, Any], headline: str) -> dict[str, Any]:
    """The noise floor of the headline metric first, the other metrics after it."""
    from dbdyno.stats.metrics import METRICS
    from dbdyno.stats.noise import noise_floor
    from dbdyno.stats.words import percent

    floors = {}
    for metric in METRICS:
        base, again = measures.metric(metric.name)
        try:
            floors[metric.name] = noise_floor(
                base, again, higher_is_better=metric.higher_is_better, level=judge["level"],
                threshold=judge["threshold"], metric=metric.name, label=metric.label,
                unit=metric.unit,
            )  # fmt: skip
        except StatsError:
            continue
    if headline not in floors:
        return {
            "decision": "noise floor",
            "headline": "Too few blocks for a noise floor.",
            "sentences": ["Run at least 3 blocks, better 20."],
        }
    main = floors[headline]
    needed = [f"{count} for {share * 100:g} %" for share, count in main.blocks_needed if count]
    words = (
        f"This set-up sees a difference of {percent(main.smallest_visible)} % or more in "
        f"{main.comparison.label} ({main.comparison.blocks} blocks, 80 % power)"
    )
    others = [floor.words for name, floor in floors.items() if name != headline]
    return {
        "decision": "noise floor",
        "headline": words + (f"; blocks needed: {', '.join(needed)}." if needed else "."),
        "sentences": [main.words, *others],
    }
