"""The metrics of a comparison, declared once: name, label, unit, and which way is better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dbdyno.base.errors import StatsError
from dbdyno.stats.quantiles import supported


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that each arm gives in each block.

    `q` is the quantile it stands for, None for throughput and mean. `unit` is "ns" or "1/s".
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
    """The metric of that name; `StatsError` with the known names when there is none."""
    for metric in METRICS:
        if metric.name == name:
            return metric
    known = ", ".join(metric.name for metric in METRICS)
    raise StatsError(f"no metric is called {name!r}", next_step=f"use one of: {known}")


def default_headline(loop: Literal["closed", "open"]) -> str:
    """The metric that carries the verdict unless the plan names another: throughput in a closed
    loop (as many operations as the engine can do), the median in an open one (the rate is
    given)."""
    return "throughput" if loop == "closed" else "p50"


def block_values(count: int, mean_ns: float, quantiles_ns: Mapping[str, float], seconds: float) -> dict[str, float]:
    """The metrics of one arm in one block, from its summary.

    `quantiles_ns` by metric name ("p50"); `seconds` is the time the arm's slices took. NaN where
    the block cannot give the metric: no operations, or a quantile with fewer than ten values
    beyond it.
    """
    values = {}
    for metric in METRICS:
        value = math.nan
        if count > 0:
            if metric.name == "throughput":
                value = count / seconds if seconds > 0 else math.nan
            elif metric.q is None:
                value = mean_ns
            elif supported(count, metric.q):
                value = quantiles_ns.get(metric.name, math.nan)
        values[metric.name] = value
    return values


def block_values_of(elapsed_ns: NDArray[Any], seconds: float) -> dict[str, float]:
    """The same from the latencies themselves (any order)."""
    if len(elapsed_ns) == 0:
        return block_values(0, math.nan, {}, seconds)
    wanted = {m.name: m.q for m in METRICS if m.q is not None}
    found = np.quantile(elapsed_ns, list(wanted.values()))
    quantiles = dict(zip(wanted, map(float, found), strict=True))
    return block_values(len(elapsed_ns), float(np.mean(elapsed_ns)), quantiles, seconds)
