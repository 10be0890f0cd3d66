"""One metric of two periods: medians, ratio, chance, p, and what they decide."""

from __future__ import annotations

import math
from typing import Any

from dbdyno.snapshot.series import Metric

LEAST = 5
"""Sub-intervals that a period needs to be judged by."""


def compared(metric: Metric, a: list[float], b: list[float], threshold: float) -> dict[str, Any]:
    """A row of a comparison: the values of each sub-interval of both, beside each other."""
    row: dict[str, Any] = {
        "metric": metric.label,
        "name": metric.name,
        "unit": _unit(metric.unit),
        "higher": metric.higher,
        "a": None,
        "a_low": None,
        "a_high": None,
        "b": None,
        "b_low": None,
        "b_high": None,
        "ratio": None,
        "low": None,
        "high": None,
        "chance": None,
        "p": None,
        "q": None,
        "decision": "cannot tell",
    }
    if not a or not b:
        return {**row, "decision": "not measured"}
    for side, values in (("a", a), ("b", b)):
        row |= _median(side, values)
    if min(len(a), len(b)) < LEAST:
        return row
    if not any(a) and not any(b):
        return {**row, "decision": "none in either"}
    row |= _ranks(a, b)
    if min(*a, *b) > 0:
        row |= _ratio(metric, a, b, threshold)
    return row


def _median(side: str, values: list[float]) -> dict[str, Any]:
    """The median with the interval between order statistics; None for an end beyond the data."""
    import numpy as np

    from dbdyno.stats.quantiles import quantile_interval

    found = quantile_interval(np.sort(np.asarray(values)), 0.5)
    low, high = (None if math.isnan(end) else end for end in (found.low, found.high))
    return {side: float(np.median(values)), f"{side}_low": low, f"{side}_high": high}


def _ranks(a: list[float], b: list[float]) -> dict[str, Any]:
    """The chance that a value of b is larger, and the test of it."""
    import numpy as np

    from dbdyno.stats.classical import mann_whitney

    _, ranks = np.unique(np.asarray([*a, *b]), return_inverse=True)
    ranks = ranks.astype(np.int64)
    found = mann_whitney(np.sort(ranks[: len(a)]), np.sort(ranks[len(a) :]))
    return {"chance": found.effect_value, "p": 10.0**found.log10_p}


def _ratio(metric: Metric, a: list[float], b: list[float], threshold: float) -> dict[str, Any]:
    from dbdyno.stats.unpaired import compare_unpaired

    found = compare_unpaired(a, b, higher_is_better=bool(metric.higher), threshold=threshold, in_order=True)
    if math.isnan(found.p):
        return {}
    return {"ratio": found.ratio, "low": found.low, "high": found.high, "p": found.p}


def decision(row: dict[str, Any], q: float, threshold: float) -> str:
    """Better or worse where the metric has a good side, more or less where it has none."""
    low, high = row["low"], row["high"]
    if low is not None and low >= 1 / (1 + threshold) and high <= 1 + threshold:
        return "same"
    if q > 0.05:
        return "cannot tell"
    grew = row["ratio"] > 1 if row["ratio"] is not None else row["chance"] > 0.5
    if row["higher"] is None:
        return "more" if grew else "less"
    return "better" if grew == row["higher"] else "worse"


def _unit(unit: str) -> str:
    return {"bytes_per_s": "bytes", "per_s": "1/s"}.get(unit, unit)
