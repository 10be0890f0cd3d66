"""Tests of metrics between two periods: medians, ratio, probability, p and decision, for all rows of a kind at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.base.json_types import TableRow
from dbdyno.snapshot.engines.metric import Metric

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEAST = 5
"""Smallest number of sub-intervals in a period that allows a decision."""
AT_ONCE = 400_000
"""Number of values of both periods that are processed at once, so that memory does not grow with the periods."""


def compare_metrics(metrics: Sequence[tuple[Metric, list[float], list[float]]]) -> list[TableRow]:
    """Return the comparison row of each metric from its values in the sub-intervals of both periods.

    Metrics with the same numbers of values are compared together.
    """
    import numpy as np

    alike: dict[tuple[int, int], list[int]] = {}
    for at, (_, before, after) in enumerate(metrics):
        alike.setdefault((len(before), len(after)), []).append(at)
    found: dict[int, TableRow] = {}
    for places in alike.values():
        some = [metrics[at] for at in places]
        a, b = (np.array([one[side] for one in some], dtype=float) for side in (1, 2))
        found |= zip(places, compared_rows([metric for metric, *_ in some], a, b), strict=True)
    return [found[at] for at in range(len(metrics))]


def compared_rows(metrics: Sequence[Metric], a: Floats, b: Floats) -> list[dict[str, object]]:
    """Return a comparison row for each metric; `a` and `b` have one row of values per metric."""
    rows = [_unknown(metric) for metric in metrics]
    if not a.shape[1] or not b.shape[1]:
        return [{**row, "decision": "not measured"} for row in rows]
    step = max(AT_ONCE // (a.shape[1] + b.shape[1]), 1)
    for at in range(0, len(rows), step):
        _fill(rows[at : at + step], a[at : at + step], b[at : at + step])
    return rows


def _unknown(metric: Metric) -> dict[str, object]:
    """Return the comparison row of a metric for which nothing can be computed."""
    sides = ("a", "a_low", "a_high", "b", "b_low", "b_high", "ratio", "low", "high", "chance", "p", "q")
    return {
        "metric": metric.label,
        "name": metric.name,
        "unit": _unit(metric.unit),
        **dict.fromkeys(sides),
        "decision": "cannot tell",
    }


def _fill(rows: list[dict[str, object]], a: Floats, b: Floats) -> None:
    """Set the results of rows from the values in both periods."""
    import numpy as np

    from dbdyno.stats.row_comparisons import medians, ratios, second_larger

    for side, values in (("a", a), ("b", b)):
        for end, found in zip((side, f"{side}_low", f"{side}_high"), medians(values), strict=True):
            _put(rows, end, found)
    if min(a.shape[1], b.shape[1]) < LEAST:
        return
    some = np.any(a, axis=1) | np.any(b, axis=1)
    for at in np.flatnonzero(~some):
        rows[at]["decision"] = "none in either"
    ranked = [rows[at] for at in np.flatnonzero(some)]
    for name, found in zip(("chance", "p"), second_larger(a[some], b[some]), strict=True):
        _put(ranked, name, found)
    positive = np.minimum(a.min(axis=1), b.min(axis=1)) > 0
    by_ratio = ratios(a[positive], b[positive])
    for name in ("ratio", "low", "high", "p"):
        _put([rows[at] for at in np.flatnonzero(positive)], name, getattr(by_ratio, name))


def _put(rows: list[dict[str, object]], name: str, values: Floats) -> None:
    for row, value in zip(rows, values.tolist(), strict=True):
        row[name] = None if math.isnan(value) else value


def decision(row: Mapping[str, Any], q: float, threshold: float) -> str:
    """Return `more`, `less`, `same` or `cannot tell`.

    A change of a metric is a finding; its direction is not judged as better or worse. If the median is 0 in both
    periods, the result is `cannot tell`, even if the metric was not always 0.
    """
    low, high = row["low"], row["high"]
    if not row["a"] and not row["b"]:
        return "cannot tell"
    if low is not None and low >= 1 / (1 + threshold) and high <= 1 + threshold:
        return "same"
    if q > 0.05:
        return "cannot tell"
    grew = row["ratio"] > 1 if row["ratio"] is not None else row["chance"] > 0.5
    return "more" if grew else "less"


def _unit(unit: str) -> str:
    return {"bytes_per_s": "bytes", "per_s": "1/s"}.get(unit, unit)
