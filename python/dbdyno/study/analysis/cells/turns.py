"""Counters of the cells in the turns of a run, and the metrics by which arms are compared."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbdyno.stats.metrics import Metric
from dbdyno.study.analysis.contract.rows import JudgeRow

if TYPE_CHECKING:
    from dbdyno.stats.comparison import BlockComparison

SKIPPED = "FL_IO_W_SKIP_"
DISK = ("CD_IO_TM_W_SM", "CD_IO_RQ_W_SM")
METRICS = (
    Metric("redo_write", "the cells' time of a redo write", "ns", False),
    Metric("redo_rate", "redo writes per second", "1/s", True),
    Metric("disk_write", "the time of a small write to hard disk", "ns", False),
)


@dataclass
class Turn:
    """Counters in one turn: difference and rate per second by metric, summed over the cells that count.

    `disk` has the same for the metrics of hard disks.
    """

    sums: dict[str, tuple[float, float]] = field(default_factory=dict)
    disk: dict[str, tuple[float, float]] = field(default_factory=dict)

    def difference(self, name: str) -> float:
        """Return a counter's difference; NaN if no cell counts it."""
        return self.sums[name][0] if name in self.sums else math.nan

    def values(self) -> dict[str, float]:
        """Return the compared values by metric; a value is NaN if the cells do not report it."""
        rate = self.sums.get("FL_RQ_W", (math.nan, math.nan))[1]
        time, requests = (self.disk.get(name, (math.nan, 0.0))[0] for name in DISK)
        return {
            "redo_write": _ratio(self.difference("FL_RQ_TM_W") * 1000, self.difference("FL_RQ_W")),
            "redo_rate": rate,
            "disk_write": _ratio(time * 1000, requests),
        }


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan


def compare_turns(turns: list[list[Turn]], judge: JudgeRow) -> list[BlockComparison]:
    """Return the comparisons of the second arm with the first, for each metric that the cells report in any block."""
    from dbdyno.stats.blocks import compare_metric

    found = []
    for metric in METRICS:
        base, other = ([turn.values()[metric.name] for turn in own] for own in turns)
        comparison = compare_metric(metric, base, other, level=judge["level"], threshold=judge["threshold"])
        if comparison.blocks:
            found.append(comparison)
    return found
