"""The metrics of a comparison: name, label, unit, and whether higher is better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dbdyno.base.errors import StatsError
from dbdyno.stats.quantiles import is_supported


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that each arm has in each block.

    `unit` is "ns" or "1/s". `q` is the quantile that the metric represents, or None for throughput and mean.
    """

    name: str
    label: str
    unit: str
    higher_is_better: bool
    q: float | None = None


METRICS: tuple[Metric, ...] = (
    Metric("throughput", "throughput", "1/s", True),
    Metric("mean", "mean latency", "ns", False),
    Metric("p50", "median latency", "ns", False, 0.5),
    Metric("p90", "p90 latency", "ns", False, 0.9),
    Metric("p99", "p99 latency", "ns", False, 0.99),
    Metric("p99.9", "p99.9 latency", "ns", False, 0.999),
)


def metric_named(name: str) -> Metric:
    """Return the metric with this name.

    Raises:
        StatsError: There is no such metric; the error lists the known names.
    """
    for metric in METRICS:
        if metric.name == name:
            return metric
    known = ", ".join(metric.name for metric in METRICS)
    raise StatsError(f"there is no metric named {name!r}", next_step=f"use one of: {known}")


def default_headline(loop: Literal["closed", "open"]) -> str:
    """Return the name of the metric that decides the verdict unless the plan names another one.

    This is throughput in a closed loop (the engine determines the number of operations), and the median latency in an
    open loop (the rate is set by the plan).
    """
    return "throughput" if loop == "closed" else "p50"


def block_values(count: int, mean_ns: float, quantiles_ns: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Return the metrics of one arm in one block, computed from its summary.

    A metric is NaN if the block has no operations, or fewer than ten values beyond a quantile.

    Args:
        count: Number of operations.
        mean_ns: Mean latency [ns].
        quantiles_ns: Quantiles of the latency [ns] by metric name, such as "p50".
        seconds: Total duration of the arm's slices [s].
    """
    values = {}
    for metric in METRICS:
        value = math.nan
        if count > 0:
            if metric.name == "throughput":
                value = count / seconds if seconds > 0 else math.nan
            elif metric.q is None:
                value = mean_ns
            elif is_supported(count, metric.q):
                value = quantiles_ns.get(metric.name, math.nan)
        values[metric.name] = value
    return values


def block_values_of(elapsed_ns: NDArray[Any], seconds: float) -> dict[str, float]:
    """Return the metrics of one arm in one block, computed from its latencies in any order; see `block_values`."""
    if len(elapsed_ns) == 0:
        return block_values(0, math.nan, {}, seconds)
    wanted = {m.name: m.q for m in METRICS if m.q is not None}
    found = np.quantile(elapsed_ns, list(wanted.values()))
    quantiles = dict(zip(wanted, map(float, found), strict=True))
    return block_values(len(elapsed_ns), float(np.mean(elapsed_ns)), quantiles, seconds)
