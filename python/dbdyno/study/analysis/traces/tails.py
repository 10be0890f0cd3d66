"""Comparison of the tails of two sets: exceedances, the longest times, high quantiles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dbdyno.stats.distributions import t_cdf, t_quantile
from dbdyno.study.analysis.contract.parts import ExceedanceDifference
from dbdyno.study.analysis.measured.tail import high_quantiles
from dbdyno.trace.source import Traces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FAR = (0.99, 0.999, 0.9999)
LONGEST = 100


def compare_tails(sets: tuple[Traces, Traces], values: tuple[Array, Array], level: float) -> dict[str, object] | None:
    """Return the tails of two sorted populations, or None if one has fewer than 100 values.

    `threshold_ns` is the base's p99. `exceed`: how many values of each set are longer, their share, and the difference
    between the shares over blocks (Welch, with interval). `longest`: how many of the K longest values of both sets are
    from each set, and how many would be if the sets were alike. `quantiles`: p99, p99.9, p99.99 and the longest value
    of each set (None if a set has too few values).
    """
    import numpy as np

    base = values[0]
    if min(v.size for v in values) < 100:
        return None
    threshold = float(np.quantile(base, 0.99))
    counts = [int(v.size - np.searchsorted(v, threshold, side="right")) for v in values]
    most = min(LONGEST, min(v.size for v in values) // 20)
    cut = np.sort(np.concatenate([v[-most:] for v in values]))[-most]
    among = [int(v.size - np.searchsorted(v, cut, side="left")) for v in values]
    whole = sum(v.size for v in values)
    return {
        "threshold_ns": threshold,
        "exceed": {
            "counts": counts,
            "shares": [n / v.size for n, v in zip(counts, values, strict=True)],
            **_over_blocks(sets, threshold, level),
        },
        # If many values equal the shortest of the longest, the longest are not defined.
        "longest": None
        if sum(among) > 2 * most
        else {
            "most": sum(among),
            "counts": among,
            "expected": [sum(among) * v.size / whole for v in values],
        },
        "quantiles": high_quantiles(values, FAR),
    }


def _over_blocks(sets: tuple[Traces, Traces], threshold: float, level: float) -> ExceedanceDifference:
    """Return the difference between the shares beyond the threshold (other minus base), over blocks."""
    import numpy as np

    shares = []
    for traces in sets:
        rows = traces.rows(
            "select blk, avg((elapsed_ns > $1)::int) as share from population group by blk",
            [threshold],
        )
        shares.append(np.array([row["share"] for row in rows], dtype=float))
    nothing: ExceedanceDifference = {"difference": None, "low": None, "high": None, "p": None}
    if min(s.size for s in shares) < 2:
        return nothing
    parts = [float(s.var(ddof=1)) / s.size for s in shares]
    error = math.sqrt(sum(parts))
    if not error > 0:
        return nothing
    df = max(sum(parts) ** 2 / sum(p**2 / (s.size - 1) for p, s in zip(parts, shares, strict=True)), 1)
    difference = float(shares[1].mean() - shares[0].mean())
    half = t_quantile(df, 0.5 + level / 2) * error
    p = min(2 * t_cdf(df, -abs(difference) / error), 1.0)
    return {"difference": difference, "low": difference - half, "high": difference + half, "p": p}
