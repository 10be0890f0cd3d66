"""Tails and quantiles of distributions, from the core: loading scipy for them would double a command's start-up time.

Tails that may underflow are base 10 logarithms. With millions of waits every p does: Welch's test on the 4,000,000
waits per arm of the flash-log post has log10 p = -15,046.8, where a library prints 0. Undefined parameters give NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dbdyno._core import (
    binomial_cdf,
    binomial_sf,
    chi2_log10_p,
    chi2_quantile,
    f_log10_p,
    kolmogorov_log10_p,
    normal_cdf,
    normal_log10_p,
    normal_quantile,
    t_cdf,
    t_log10_p,
    t_power,
    t_quantile,
)

__all__ = [
    "binomial_cdf",
    "binomial_sf",
    "chi2_log10_p",
    "chi2_quantile",
    "f_log10_p",
    "kolmogorov_log10_p",
    "normal_cdf",
    "normal_log10_p",
    "normal_quantile",
    "t_cdf",
    "t_cdfs",
    "t_log10_p",
    "t_power",
    "t_quantile",
    "t_quantiles",
]

Numbers = NDArray[np.float64]


def t_cdfs(df: Any, t: Any) -> Numbers:
    """Return `t_cdf` for arrays that broadcast."""
    return np.array(_t_cdfs(df, t), dtype=np.float64)


def t_quantiles(df: Any, p: float) -> Numbers:
    """Return `t_quantile` for an array of degrees of freedom, computing equal ones once."""
    values, places = np.unique(np.asarray(df, dtype=np.float64), return_inverse=True)
    return np.array([t_quantile(float(one), p) for one in values], dtype=np.float64)[places]


_t_cdfs = np.frompyfunc(t_cdf, 2, 1)
