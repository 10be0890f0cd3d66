"""Comparison of methods that load rows: rows per second of each method, and its start-up time.

If there are few rows, a method that starts programs spends most of its time on starting them; then only start-ups are
compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dbdyno.evidence.run import Run
from dbdyno.stats.wording import duration
from dbdyno.study.analysis.contract.rows import Model
from dbdyno.study.analysis.measured.measures import Measures

START_SHARE = 0.5
"""Share of a method's time above which its start-up is reported."""
START_ROWS = 40
"""Number of rows loaded when the start-up was timed: one partition."""


@dataclass(frozen=True)
class LoadMethod:
    """A load method (an arm): its number of rows, its mean time, and its time for almost no rows."""

    name: str
    rows: int
    mean_ns: float
    start_ns: float

    @property
    def started(self) -> float:
        """Return the share of the time that is start-up."""
        return min(1.0, self.start_ns / self.mean_ns)


def add(model: Model, measures: Measures, run: Run) -> None:
    """Put the rows per second, and a note on times that are mostly start-up, first in the verdict."""
    starts = run.manifest.flows.get("arm_floor_ns", {})
    ways = [
        LoadMethod(arm["name"], int(arm["levels"]["lines"]), mean, float(starts.get(arm["name"], 0)))
        for arm, mean in zip(run.manifest.plan["arms"], _means(measures), strict=True)
        if np.isfinite(mean) and mean > 0
    ]
    verdict = model["verdict"]
    verdict["sentences"][:0] = sentences(ways)
    for way in ways:
        if way.started >= START_SHARE and verdict["headline"].startswith(f"{way.name} "):
            verdict["headline"] = (
                f"{verdict['headline'].rstrip('.')}; {100 * way.started:.0f} % of its time is startup."
            )


def _means(measures: Measures) -> list[float]:
    return [float(np.nanmean(arm.values["mean"])) for arm in measures.arms]


def sentences(ways: Sequence[LoadMethod]) -> list[str]:
    """Return sentences on the speed of each method, and on methods that mostly start up instead of writing rows."""
    rates = ", ".join(f"{way.name} {way.rows / way.mean_ns * 1e9:,.0f}" for way in ways)
    said = [f"Rows a second: {rates}."] if ways else []
    for way in ways:
        if way.started >= START_SHARE:
            share, mean = f"{100 * way.started:.0f} %", duration(way.mean_ns)
            said.append(
                f"{share} of the {mean} of {way.name} is also needed for {START_ROWS} rows: this compared its "
                "startup, not its writing. With more rows (--set lines=200000) the ranking may change."
            )
    return said
