"""Slope of a time over a size, robust against stalls: a line through the medians of equally large groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

GROUPS = 8
SPREAD = 2.0
"""Minimum ratio of the largest to the smallest group's size for determining a slope."""


def slope(sizes: Floats, times: Floats) -> tuple[float, float, float] | None:
    """Return the slope and its jackknife interval over groups; None if there are few sizes, or they hardly differ.

    A slope below 0 counts as 0.
    """
    import numpy as np

    if len(sizes) < 20 * GROUPS:
        return None
    order = np.argsort(sizes, kind="stable")
    groups = np.array_split(order, GROUPS)
    x = np.array([float(np.median(sizes[own])) for own in groups])
    y = np.array([float(np.median(times[own])) for own in groups])
    if x[0] <= 0 or x[-1] / x[0] < SPREAD:
        return None
    whole = float(np.polyfit(x, y, 1)[0])
    left_out = [float(np.polyfit(np.delete(x, at), np.delete(y, at), 1)[0]) for at in range(GROUPS)]
    # The jackknife's standard error, twice.
    error = 2.0 * float(np.sqrt((GROUPS - 1) / GROUPS * np.sum((np.array(left_out) - np.mean(left_out)) ** 2)))
    return max(whole, 0.0), max(whole - error, 0.0), max(whole + error, 0.0)
