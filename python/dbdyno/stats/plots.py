"""Data of the figures of `dbdyno stats plot`, as plain values; the renderers compute nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dbdyno.base.errors import StatsError
from dbdyno.base.json_types import JsonObject
from dbdyno.stats.arrays import Floats

if TYPE_CHECKING:
    from dbdyno.stats.description import Description
    from dbdyno.stats.scalability import UslFit


def coarse_buckets(described: Description, limit: int) -> list[tuple[float, float, list[int]]]:
    """Return at most `limit` buckets over all groups, as tuples of low, high, and the count of each group.

    The buckets are equally wide, on the log scale if all values are above 0 and span a factor of ten. A bucket of the
    fine histogram is counted as a whole in the bucket that contains its middle. There are no buckets if a minimum or
    maximum is not finite, or if there are no values.
    """
    groups = [group for group in described.groups if group.n]
    if not all(math.isfinite(group.max - group.min) for group in groups) or not groups:
        return []
    low, high = min(group.min for group in groups), max(group.max for group in groups)
    logarithmic = low > 0 and high >= 10 * low

    def place(value: float) -> float:
        return math.log10(value) if logarithmic else value

    first, span = place(low), place(high) - place(low)
    # Rice's rule: the number of buckets is twice the cube root of the number of values.
    fitting = round(2 * max(group.n for group in groups) ** (1 / 3))
    steps = max(min(limit, fitting), 1) if span > 0 else 1
    edges = [first + span * at / steps for at in range(steps + 1)]
    counts = [[0] * len(described.groups) for _ in range(steps)]
    for number, group in enumerate(described.groups):
        for start, end, count in group.histogram:
            middle = min(max((start + end) / 2, low), high)
            share = (place(middle) - first) / span if span > 0 else 0.0
            counts[min(int(share * steps), steps - 1)][number] += count
    values = [10**edge if logarithmic else edge for edge in edges]
    values[0], values[-1] = low, high
    return [(values[at], values[at + 1], counts[at]) for at in range(steps)]


def spans_decades(low: float, high: float) -> bool:
    """Return True if a range is better shown on a logarithmic axis: above 0 and a factor of 30 or more."""
    return low > 0 and high >= 30 * low


def scatter(x: Floats, y: Floats, *, log: bool | None = None, cells: int = 64, points: int = 2000) -> dict[str, object]:
    """Return the data of a scatter plot with its least squares line.

    Up to `points` points are returned one by one; if there are more, the result has the number of points in each cell
    of a grid of `cells` x `cells`. On logarithmic axes, the line is fitted to the logs.

    Args:
        x: Values of the x axis.
        y: Values of the y axis.
        log: True or False for both axes; None decides for each axis by its range.
        cells: Number of cells along each axis.
        points: Largest number of points that are returned one by one.

    Raises:
        StatsError: There are no rows, or a logarithmic axis has values not above 0.
    """
    from dbdyno.stats.arrays import complete_rows

    x, y = complete_rows(x, y)
    if x.size == 0:
        raise StatsError("there are no values to draw", next_step="check the condition of --where")
    logs = [spans_decades(float(v.min()), float(v.max())) if log is None else log for v in (x, y)]
    for v, is_log in zip((x, y), logs, strict=True):
        if is_log and v.min() <= 0:
            raise StatsError(
                "a logarithmic axis needs values above 0",
                next_step="leave --log out, or exclude the other values with --where",
            )
    at = [np.log10(v) if is_log else v for v, is_log in zip((x, y), logs, strict=True)]
    model: dict[str, object] = {
        "n": int(x.size),
        "log_x": logs[0],
        "log_y": logs[1],
        "x_range": [float(x.min()), float(x.max())],
        "y_range": [float(y.min()), float(y.max())],
        "points": [],
        "cells": [],
        "line": _line(at[0], at[1], logs),
    }
    if x.size <= points:
        model["points"] = [[float(a), float(b)] for a, b in zip(x, y, strict=True)]
        return model
    counts, x_edges, y_edges = np.histogram2d(at[0], at[1], bins=cells)
    edges = [(10**e if is_log else e).tolist() for e, is_log in zip((x_edges, y_edges), logs, strict=True)]
    model["cells"] = [
        [edges[0][i], edges[0][i + 1], edges[1][j], edges[1][j + 1], int(counts[i, j])]
        for i, j in zip(*np.nonzero(counts), strict=True)
    ]
    return model


def _line(x: Floats, y: Floats, logs: list[bool]) -> list[list[float]]:
    """Return the fitted line over the range of x as points, in the units of the data."""
    from dbdyno.stats.regression import lm

    if x.size < 3 or not float(np.ptp(x)) > 0:
        return []
    fit = lm(y, x)
    intercept, slope = (c.estimate for c in fit.coefficients)
    ends = np.linspace(x.min(), x.max(), 2 if logs[0] == logs[1] else 60)
    drawn = np.column_stack([ends, intercept + slope * ends])
    for axis, is_log in enumerate(logs):
        if is_log:
            drawn[:, axis] = 10.0 ** drawn[:, axis]
    rows: list[list[float]] = drawn.tolist()
    return rows


def histogram(described: Description, *, bins: int = 60) -> JsonObject:
    """Return the share of each group in each of at most `bins` buckets."""
    rows = coarse_buckets(described, bins)
    groups = [
        {
            "name": group.name,
            "n": group.n,
            "steps": [[low, high, counts[at] / max(group.n, 1)] for low, high, counts in rows],
        }
        for at, group in enumerate(described.groups)
    ]
    return {"groups": groups, "log": _logarithmic(described)}


def density(described: Description, *, places: int = 400) -> JsonObject:
    """Return a smooth density of each group at `places` points, over the logarithm if the axis is logarithmic.

    It is a Gaussian kernel over the buckets of the fine histogram. Its width is Silverman's (1986, 3.31), 0.9 min(sd,
    IQR / 1.34) n^(-1/5), but at least that of a bucket and 1.5 steps of the curve. The density is per unit of the axis
    (per decade on a logarithmic axis), so the areas under the curves are 1.
    """
    logarithmic = _logarithmic(described)
    shapes = []
    for group in described.groups:
        if not group.n:
            continue
        middles = np.array([(low + high) / 2 for low, high, _ in group.histogram])
        weights = np.array([count for _, _, count in group.histogram], dtype=np.float64)
        shapes.append((group, np.log10(middles) if logarithmic else middles, weights / group.n))
    if not shapes:
        return {"groups": [], "log": logarithmic}
    widths = [_kernel_width(places, weights, group.n) for group, places, weights in shapes]
    low = min(at.min() - 3 * w for (_, at, _), w in zip(shapes, widths, strict=True))
    high = max(at.max() + 3 * w for (_, at, _), w in zip(shapes, widths, strict=True))
    grid = np.linspace(low, high, places)
    widths = [max(width, 1.5 * float(grid[1] - grid[0])) for width in widths]
    groups = []
    for (group, at, weights), width in zip(shapes, widths, strict=True):
        apart = (grid[:, None] - at[None, :]) / width
        curve = np.exp(-0.5 * apart**2) @ weights / (width * math.sqrt(2 * math.pi))
        shown = 10**grid if logarithmic else grid
        groups.append({"name": group.name, "n": group.n, "points": np.column_stack([shown, curve]).tolist()})
    return {"groups": groups, "log": logarithmic}


def _kernel_width(at: Floats, weights: Floats, n: int) -> float:
    mean = float(at @ weights)
    sd = math.sqrt(max(float((at - mean) ** 2 @ weights), 0.0))
    below = np.cumsum(weights)
    q1, q3 = (float(at[min(int(np.searchsorted(below, q)), at.size - 1)]) for q in (0.25, 0.75))
    spread = min(sd, (q3 - q1) / 1.34) if q3 > q1 else sd
    least = float(np.diff(at).min()) if at.size > 1 else 0.0
    return max(0.9 * spread * n**-0.2, least) or (abs(mean) * 0.01 or 1.0)


def _logarithmic(described: Description) -> bool:
    groups = [group for group in described.groups if group.n]
    if not groups:
        return False
    return spans_decades(min(g.min for g in groups), max(g.max for g in groups))


def longest_values(described: Description) -> JsonObject:
    """Return the longest values by rank; rank 1 is the largest."""
    points = [[at, e.value, e.group] for at, e in enumerate(described.longest, 1)]
    low = min((e.value for e in described.longest), default=0.0)
    high = max((e.value for e in described.longest), default=0.0)
    groups = [group.name for group in described.groups]
    return {"points": points, "groups": groups, "log": spans_decades(low, high)}


def scaling_points(fit: UslFit, load: Floats, throughput: Floats) -> dict[str, object]:
    """Return the measured points, the fitted law up to 1.25 times the largest load, and its peak within that range."""
    at = np.linspace(float(load.min()), float(load.max()) * 1.25, 120)
    peak = fit.peak.estimate
    return {
        "points": [[float(a), float(b)] for a, b in zip(load, throughput, strict=True)],
        "curve": np.column_stack([at, fit.predict(at)]).tolist(),
        "peak": [peak, fit.peak_throughput] if peak <= at[-1] else None,
    }
