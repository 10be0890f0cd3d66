"""Measures of a run of which only sums are known: an import from another program, or a result.

Each block is one interval for which the program reported values; a metric that it did not report is NaN. Single
operations are not known, so values cannot be pooled over blocks, and distributions cannot be drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from dbdyno.base.errors import EvidenceError
from dbdyno.evidence.run import Block, Run
from dbdyno.study.analysis.measured.evidence_kind import reads
from dbdyno.study.analysis.measured.facts import IMPORTED
from dbdyno.study.analysis.measured.measures import ArmMeasures, Measures, measure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SUMS = "sums"
"""Kind of evidence of a run of which only sums are known."""
VALUES = (
    "count",
    "transactions",
    "failed",
    "skipped",
    "rows",
    "mean",
    "m2",
    "max",
    "throughput",
    "p50",
    "p90",
    "p99",
    "p99.9",
)
"""Names of an arm's arrays of values."""

_SQL = "select arm, block, metric, value from metrics where kind = 'sum' order by block"


class SumMeasures(Measures):
    """Measures whose blocks cannot be pooled, because single operations are not known."""

    def batch_size(self, name: str) -> int:
        """Return 1, because the quantile of several blocks cannot be computed from the quantiles of each."""
        return 1


@runtime_checkable
class RunWithMeasures(Protocol):
    """A run that has the values of each block but no evidence, such as a result."""

    def measures(self) -> SumMeasures:
        """Return the values of each arm by block."""


def measures_of(run: Run, operation: str | None = None) -> Measures:
    """Return the measures of a run, whatever its evidence.

    Raises:
        EvidenceError: There is no complete block.
    """
    if isinstance(run, RunWithMeasures):
        return run.measures()
    if reads(run).evidence == SUMS:
        return measure_sums(run)
    measures = measure(run, operation)
    if run.manifest.switch == IMPORTED and len(measures.arms) == 1:
        _by_wall_clock(measures.arms[0])
    return measures


def measure_sums(run: Run) -> SumMeasures:
    """Read the sums of a run's complete blocks.

    Raises:
        EvidenceError: No block that counts is complete.
    """
    from dbdyno.evidence.query import connect

    connection, broken = connect(run)
    with connection:
        tables = {name for (name,) in connection.execute("show tables").fetchall()}
        rows = connection.execute(_SQL).fetchall() if "metrics" in tables else []
    blocks = [block for block in run.blocks() if block.index in {row[1] for row in rows}]
    if not blocks:
        raise EvidenceError(
            "contains no complete block that counts", where=str(run.path), next_step="import the run again"
        )
    return measures_of_rows(run, blocks, rows, broken)


def measures_of_rows(
    run: Run, blocks: list[Block], rows: list[tuple[str, int, str, float]], broken: list[str]
) -> SumMeasures:
    """Return measures made of rows with arm, block number, metric name and value."""
    import numpy as np

    places = {block.index: at for at, block in enumerate(blocks)}
    arms = []
    names = [arm["name"] for arm in run.manifest.arms]
    for at, about in enumerate(run.manifest.arms):
        values: dict[str, NDArray[np.float64]] = {name: np.full(len(blocks), np.nan) for name in VALUES}
        for arm, block, metric, value in rows:
            if arm == about["name"] and metric in values and block in places:
                values[metric][places[block]] = value
        values["count"] = values["transactions"]
        base = about.get("against") or names[0]
        place = names.index(base) if base in names else 0
        arms.append(
            ArmMeasures(about["name"], about["name"], about["sessions"], blocks, [], values, base=place, number=at)
        )
    return SumMeasures(arms, broken)


def _by_wall_clock(arm: ArmMeasures) -> None:
    """Set an imported arm's throughput from elapsed time, since its sessions may have paused between operations."""
    import numpy as np

    spans = np.array([block.ended_ns - block.started_ns for block in arm.blocks], dtype=float)
    arm.values["throughput"] = arm.values["transactions"] * 1e9 / np.where(spans > 0, spans, np.nan)
