"""Test of which cell, disk or flash module differs from its siblings.

Siblings are cells (each metric combined over a cell's objects), and objects of one kind: all hard disks, all flash
disks, all grid disks of one group. In every round of a recording, each sibling's rate or latency is divided by the
median of all siblings of that round. The mean log ratio over the rounds is tested with Student's t against that of the
median sibling: each round is one observation, and the error is widened for the autocorrelation of the rounds. All tests
of a page share one false discovery rate (Benjamini and Hochberg). A difference is reported if it is both significant
and larger than a threshold.

With fewer than 4 rounds nothing can be tested: the siblings are shown, without a finding.
"""

from __future__ import annotations

import math
from typing import Any, TypedDict

from dbdyno.stats.distributions import t_cdfs, t_quantiles

SCHEMA = 1
ROUNDS_LEAST = 4
SIBLINGS_LEAST = 3
THRESHOLD = 0.25
LEVEL = 0.05

Series = dict[tuple[str, str, str], dict[int, float]]
"""Values by round for each (metric, kind of siblings, sibling)."""


class Sibling(TypedDict):
    """Test of one sibling on one metric.

    Attributes:
        metric: Name of the metric.
        siblings: Kind of the siblings.
        name: Name of the sibling.
        n_siblings: Number of siblings.
        rounds: Number of rounds with a value.
        ratio: Mean ratio to the median of the siblings over the rounds.
        low: Lower end of the 95 % interval of `ratio`.
        high: Upper end of the 95 % interval of `ratio`.
        p: p value for no difference from the siblings.
        q: p value corrected for several tests (Benjamini and Hochberg).
        differs: True if q is significant and the ratio is beyond the threshold.
    """

    metric: str
    siblings: str
    name: str
    n_siblings: int
    rounds: int
    ratio: float
    low: float
    high: float
    p: float
    q: float
    differs: bool


class SkewPage(TypedDict):
    """Model of the test of siblings; `enough` says whether there are enough rounds for a test."""

    schema: int
    kind: str
    page: str
    rounds: int
    threshold: float
    tested: int
    enough: bool
    rows: list[Sibling]


def skew_page(series: Series, rounds: int, *, threshold: float = THRESHOLD) -> SkewPage:
    """Return the model of the test of siblings from a recording's series (`Measured.siblings`) over `rounds` rounds."""
    found = findings(series, threshold=threshold)
    return {
        "schema": SCHEMA,
        "kind": "cells",
        "page": "skew",
        "rounds": rounds,
        "threshold": threshold,
        "tested": len(found),
        "enough": rounds >= ROUNDS_LEAST,
        "rows": sorted(found, key=_by_size),
    }


def _by_size(sibling: Sibling) -> tuple[bool, float, str, str]:
    return (not sibling["differs"], -abs(math.log(sibling["ratio"])), sibling["metric"], sibling["name"])


def findings(series: Series, *, threshold: float = THRESHOLD) -> list[Sibling]:
    """Test every sibling that has enough rounds; q is corrected over all tests."""
    import numpy as np

    from dbdyno.stats import benjamini_hochberg

    groups: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    for (metric, kind, name), by in series.items():
        groups.setdefault((metric, kind), {})[name] = by
    tested = [
        (metric, kind, len(own), *one)
        for (metric, kind), own in groups.items()
        if len(own) >= SIBLINGS_LEAST
        for one in _ratios(own)
    ]
    if not tested:
        return []
    means, errors = (np.array([one[at] for one in tested]) for at in (5, 6))
    freedom = np.array([one[4] - 1 for one in tested])
    halves = t_quantiles(freedom, 0.975) * errors
    with np.errstate(divide="ignore", invalid="ignore"):
        ps = 2 * t_cdfs(freedom, -np.abs(means) / errors)
    ps = np.where(errors > 0, ps, np.where(means == 0, 1.0, 0.0))
    qs = benjamini_hochberg([float(p) for p in ps])
    border = math.log1p(threshold)
    return [
        {
            "metric": metric,
            "siblings": kind,
            "name": name,
            "n_siblings": n,
            "rounds": rounds,
            "ratio": math.exp(mean),
            "low": math.exp(mean - half),
            "high": math.exp(mean + half),
            "p": float(p),
            "q": q,
            "differs": bool(q < LEVEL and abs(mean) > border),
        }
        for (metric, kind, n, name, rounds, mean, _), half, p, q in zip(tested, halves, ps, qs, strict=True)
    ]


def _ratios(own: dict[str, dict[int, float]]) -> list[tuple[str, int, float, float]]:
    """Return name, number of rounds, mean log ratio and its standard error for each sibling.

    The median of the siblings' mean log ratios is subtracted from each of them: if load comes in bursts, the
    mean log ratio of every sibling is shifted, although none of them differs from the others.
    """
    import numpy as np

    rounds = sorted({at for by in own.values() for at in by})
    medians = {}
    for at in rounds:
        values = [by[at] for by in own.values() if at in by]
        if len(values) >= SIBLINGS_LEAST:
            medians[at] = float(np.median(values))
    found = []
    for name, by in own.items():
        logs = np.array(
            [math.log(by[at] / medians[at]) for at in rounds if at in medians and medians[at] > 0 and by.get(at, 0) > 0]
        )
        if logs.size >= ROUNDS_LEAST:
            error = float(logs.std(ddof=1)) / math.sqrt(logs.size) * _error_factor(logs)
            found.append((name, int(logs.size), float(logs.mean()), error))
    middle = float(np.median([mean for *_, mean, _ in found])) if found else 0.0
    return [(name, size, mean - middle, error) for name, size, mean, error in found]


def _error_factor(logs: Any) -> float:
    """Return the factor, at least 1, by which autocorrelation of the rounds widens the standard error of a mean.

    It is sqrt((1 + r) / (1 - r)) with the lag-1 autocorrelation r, as for a first-order autoregression.
    """
    centred = logs - logs.mean()
    power = float(centred @ centred)
    r = float(centred[1:] @ centred[:-1]) / power if power > 0 else 0.0
    r = min(max(r, 0.0), 0.9)
    return math.sqrt((1 + r) / (1 - r))
