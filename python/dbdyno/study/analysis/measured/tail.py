"""Comparison of the tails of two arms: which arm has more of the longest operations of both arms together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.stats.distributions import t_cdf, t_quantile
from dbdyno.study.analysis.contract.parts import HighQuantile
from dbdyno.study.analysis.measured.measures import ArmMeasures, Measures

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbdyno.study.analysis.figure_data.pictures import Latencies

HIGH_QUANTILES = (0.99, 0.999, 0.9999, 0.99999)
VALUES_BEYOND_LEAST = 10


def compare_tails(measures: Measures, latencies: Latencies, limit: int, level: float) -> dict[str, object] | None:
    """Return the tails of the first two arms, or None if one has fewer than 100 operations.

    `threshold_ns` is the base's p99. `exceed`: how many operations of each arm are longer, their share, and the
    difference between the shares, paired over blocks, with its interval. `longest`: how many of the `limit` longest
    operations are from each arm, and how many would be if the arms were alike. `quantiles`: high quantiles and the
    longest operation (None if fewer than ten operations are beyond a quantile).
    """
    import numpy as np

    pair = latencies[:2]
    if len(pair) < 2 or min(v.size for v in pair) < 100:
        return None
    base, other = pair
    threshold = float(np.quantile(base, 0.99))
    counts = [int(v.size - np.searchsorted(v, threshold, side="right")) for v in pair]
    limit = min(limit, base.size, other.size)
    cut = np.partition(np.concatenate([v[-limit:] for v in pair]), -limit)[-limit]
    among = [int(v.size - np.searchsorted(v, cut, side="left")) for v in pair]
    whole = base.size + other.size
    return {
        "threshold_ns": threshold,
        "exceed": {
            "counts": counts,
            "shares": [n / v.size for n, v in zip(counts, pair, strict=True)],
            **_over_blocks(measures.arms[0], measures.arms[1], threshold, level),
        },
        "longest": {
            "most": sum(among),
            "counts": among,
            "expected": [sum(among) * v.size / whole for v in pair],
        },
        "quantiles": high_quantiles(pair, HIGH_QUANTILES),
    }


def _over_blocks(base: ArmMeasures, other: ArmMeasures, threshold: float, level: float) -> dict[str, object]:
    """Return the mean difference between the shares beyond the threshold, paired by block, with Student's interval."""
    import numpy as np

    apart = _shares(other, threshold) - _shares(base, threshold)
    apart = apart[np.isfinite(apart)]
    n = apart.size
    error = float(apart.std(ddof=1)) / n**0.5 if n > 1 else 0.0
    if not error > 0:
        return {"difference": None, "low": None, "high": None, "p": None}
    mean = float(apart.mean())
    half = t_quantile(n - 1, 0.5 + level / 2) * error
    p = min(2 * t_cdf(n - 1, -abs(mean) / error), 1.0)
    return {"difference": mean, "low": mean - half, "high": mean + half, "p": p}


def high_quantiles(sides: Sequence[NDArray[Any]], quantiles: Sequence[float]) -> list[HighQuantile]:
    """Return high quantiles, and the largest value, of the sorted values of each side."""
    import numpy as np

    def at(values: NDArray[Any], q: float) -> float | None:
        return float(np.quantile(values, q)) if values.size * (1 - q) >= VALUES_BEYOND_LEAST - 1e-9 else None

    rows: list[HighQuantile] = [
        {"name": f"p{q * 100:.6g}", "values_ns": [at(values, q) for values in sides]} for q in quantiles
    ]
    return [*rows, {"name": "longest", "values_ns": [float(values[-1]) for values in sides]}]


def _shares(arm: ArmMeasures, threshold: float) -> NDArray[np.float64]:
    import numpy as np

    from dbdyno import _core

    found = []
    for part in arm.parts:
        values = np.frombuffer(_core.latencies([part], arm.name, arm.operation, list(arm.expected)), dtype="<u8")
        beyond = values.size - np.searchsorted(values, threshold, side="right")
        found.append(beyond / values.size if values.size else np.nan)
    return np.array(found)
