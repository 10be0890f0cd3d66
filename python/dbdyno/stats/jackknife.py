"""Jackknife error of any figure over pooled blocks: each block is left out once (Quenouille 1956, Tukey 1958).

A ratio of sums over blocks (time per transaction, multiplied by the share of an event) has no mean over blocks if some
block has no transaction or no sample. The jackknife measures how the pooled figure changes when a block is left out.
Its interval is Student's t interval with the number of blocks minus 1 degrees of freedom.

    >>> import numpy as np
    >>> values = np.array([1.0, 2.0, 3.0])
    >>> estimate, error = jackknife(lambda keep: values[keep].mean(), 3)
    >>> float(estimate), round(float(error), 4)  # the standard error of a mean
    (2.0, 0.5774)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dbdyno.stats.distributions import t_quantile

Array = NDArray[np.float64]


def jackknife(figure: Callable[[NDArray[np.bool_]], Array | float], blocks: int) -> tuple[Array, Array]:
    """Return a figure (a number or an array) over all blocks, and its standard error.

    With fewer than two blocks the error is NaN.

    Args:
        figure: Function that computes the figure from a mask of the blocks to use.
        blocks: Number of blocks.
    """
    whole = np.asarray(figure(np.ones(blocks, dtype=bool)), dtype=float)
    if blocks < 2:
        return whole, np.full_like(whole, np.nan)
    without = []
    for left in range(blocks):
        keep = np.ones(blocks, dtype=bool)
        keep[left] = False
        without.append(np.asarray(figure(keep), dtype=float))
    stacked = np.stack(without)
    spread = ((stacked - stacked.mean(axis=0)) ** 2).sum(axis=0)
    return whole, np.sqrt((blocks - 1) / blocks * spread)


def half_width(error: Array, blocks: int, level: float) -> Array:
    """Return half the width of the interval at `level`; NaN with fewer than two blocks."""
    if blocks < 2:
        return np.full_like(np.asarray(error, dtype=float), np.nan)
    half: Array = t_quantile(blocks - 1, 0.5 + level / 2) * np.asarray(error, dtype=float)
    return half
