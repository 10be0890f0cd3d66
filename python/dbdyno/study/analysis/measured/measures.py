"""Values of each arm in each block that counts, on which inference is based.

A high quantile needs enough operations beyond it. If a block has fewer than `TAIL_COUNT`, neighbouring blocks are
combined until there are enough, so a p99.9 is based on fewer, larger blocks than a median.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.base.core_types import Summary
from dbdyno.base.errors import EvidenceError
from dbdyno.evidence.run import Block, Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
TAIL_COUNT = 10
BATCHES_MIN = 4
"""Smallest number of batches for a useful interval."""

Part = tuple[Path, list[int]]


@dataclass(frozen=True)
class ArmMeasures:
    """The blocks of an arm that count, with the values of the arm in each block.

    Attributes:
        label: Name shown on pages.
        name: Name in the evidence.
        sessions: Number of sessions.
        blocks: The blocks that count.
        parts: The part of evidence of each block.
        values: Arrays with one value per block in `blocks`, by name of the value.
        operation: Kind of call that was timed.
        base: Index of the arm with which this arm is compared; its own index if it is a base.
        number: Index of the arm in its run.
        expected: SQLSTATEs that are expected outcomes.
    """

    label: str
    name: str
    sessions: int
    blocks: list[Block]
    parts: list[Part]
    values: dict[str, Array]
    operation: str = "transaction"
    base: int = 0
    number: int = 0
    expected: tuple[str, ...] = ()

    def pooled_latencies(self) -> NDArray[np.uint64]:
        """Return all latencies of the arm in blocks that count [ns], sorted."""
        import numpy as np

        from dbdyno import _core

        return np.frombuffer(_core.latencies(self.parts, self.name, self.operation, list(self.expected)), dtype="<u8")

    def total(self, name: str) -> int:
        """Return the sum of a count over all blocks: `transactions` (successful ones), `failed` or `skipped`."""
        import numpy as np

        return int(np.nansum(self.values[name]))

    def batch_quantiles(self, q: float, size: int) -> Array:
        """Return a quantile over batches of `size` neighbouring blocks; only whole batches are used."""
        ends = range(0, len(self.parts) - size + 1, size)
        if len(ends) < BATCHES_MIN:
            ends = range(0)
        groups = [self.parts[at : at + size] for at in ends]
        rows = summaries(groups, [q], self.operation, self.expected)
        return _column(rows, self.name, len(groups), _first_quantile)


@dataclass(frozen=True)
class Measures:
    """Measures of all arms of a run, the base first; `broken` has sentences on parts that cannot be read."""

    arms: list[ArmMeasures]
    broken: list[str]

    def compared_arms(self) -> list[tuple[int, ArmMeasures]]:
        """Return the arms that are compared with another, with their indexes."""
        return [(at, arm) for at, arm in enumerate(self.arms) if arm.base != at]

    @property
    def expected(self) -> list[str]:
        """Return the SQLSTATEs that are expected outcomes according to the plan of the first arm's run."""
        return list(self.arms[0].expected)

    def metric(self, name: str) -> list[Array]:
        """Return the values of a metric per arm, by block, or by batch of blocks if the tail has too few values."""
        size = self.batch_size(name)
        if size == 1:
            return [arm.values[name] for arm in self.arms]
        return [arm.batch_quantiles(QUANTILES[name], size) for arm in self.arms]

    def batch_size(self, name: str) -> int:
        """Return the number of neighbouring blocks that are combined for a quantile."""
        import numpy as np

        if name not in QUANTILES:
            return 1
        smallest = min(float(np.median(arm.values["count"])) for arm in self.arms)
        if not smallest > 0:
            return 1
        return max(1, math.ceil(TAIL_COUNT / (1 - QUANTILES[name]) / smallest - 1e-9))


def measure(run: Run, operation: str | None = None) -> Measures:
    """Read the evidence of a run's complete blocks; `operation` replaces the kind of call that the plan times.

    Raises:
        EvidenceError: No block that counts is complete.
    """
    from dbdyno.evidence.query import complete_parts

    readable, broken = complete_parts(run, "calls")
    names = {path.stem for path in readable}
    blocks = [b for b in run.blocks() if b.kind == "measure" and b.name in names]
    if not blocks:
        raise EvidenceError(
            "contains no complete block that counts",
            where=str(run.path),
            next_step=f"finish the run with: dbdyno run --resume {run.id}",
        )
    parts = [part_of(run, block) for block in blocks]
    operation = operation or operation_of(run)
    expected = expected_of(run)
    rows = summaries([[part] for part in parts], list(QUANTILES.values()), operation, expected)
    about = run.manifest.arms
    length_ns = run.manifest.slice_ns or run.manifest.turn_ns
    places = {arm["name"]: at for at, arm in enumerate(about)}
    arms = [
        ArmMeasures(
            arm["name"],
            arm["name"],
            arm["sessions"],
            blocks,
            parts,
            _arrays(rows, arm["name"], len(parts)),
            operation,
            places.get(arm.get("against") or "", 0),
            at,
            expected,
        )
        for at, arm in enumerate(about)
    ]
    for arm, given in zip(arms, about, strict=True):
        if given.get("rate_per_s") and length_ns:
            arm.values["throughput"] = served_per_second(arm.values, arm.number, blocks, length_ns)
    return Measures(arms, broken)


def operation_of(run: Run) -> str:
    """Return the kind of call whose times the run compares."""
    return str(run.manifest.plan["judge"].get("operation", "transaction"))


def expected_of(run: Run) -> tuple[str, ...]:
    """Return the SQLSTATEs that a run's plan expects as outcomes.

    If a row of `calls` states itself whether its error was expected, that takes precedence; such rows exist for codes
    that one script expects and for MariaDB's error numbers.
    """
    plan = run.manifest.plan
    scripts = [script for of in (plan["workload"], *plan["arms"]) for script in of.get("scripts") or ()]
    given = [code for of in (plan["workload"], *scripts) for code in of.get("expected_errors") or ()]
    return tuple(dict.fromkeys(map(str, given)))


def part_of(run: Run, block: Block) -> Part:
    """Return the path of a block's part of the evidence, and the numbers of its slices that do not count."""
    return run.calls_part(block), [s.slice for s in block.slices if not s.counts]


def summaries(
    groups: Sequence[Sequence[Part]],
    quantiles: list[float],
    operation: str = "transaction",
    expected: Sequence[str] = (),
) -> list[Summary]:
    """Return one summary per group and arm; see `_core.summarise`."""
    from dbdyno import _core

    listed = [list(group) for group in groups]
    return _core.summarise(listed, quantiles, operation, list(expected))


def throughput(row: Summary) -> float:
    """Return the successful transactions per second: transactions * sessions / (total busy time of the sessions)."""
    if not row["transactions"] or not row["busy_ns"]:
        return math.nan
    return float(row["transactions"] * row["sessions"] * 1e9 / row["busy_ns"])


def served_per_second(values: dict[str, Array], number: int, blocks: list[Block], length_ns: int) -> Array:
    """Return the successful transactions per second in an open loop.

    The rate refers to the length of the arm's slices that count, because arrivals were due during that time. Sessions
    wait for arrivals, so their busy time says nothing about the rate.
    """
    import numpy as np

    slices = np.array([sum(s.arm == number and s.counts for s in block.slices) for block in blocks], dtype=float)
    rate: Array = values["transactions"] * 1e9 / np.where(slices > 0, slices * length_ns, np.nan)
    return rate


def _first_quantile(row: Summary) -> float:
    return _number(row["quantiles_ns"][0])


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _arrays(rows: list[Summary], arm: str, groups: int) -> dict[str, Array]:
    def column(value: Callable[[Summary], float]) -> Array:
        return _column(rows, arm, groups, value)

    def quantile(at: int) -> Array:
        return column(lambda row: _number(row["quantiles_ns"][at]))

    return {
        "count": column(lambda r: r["count"]),
        "transactions": column(lambda r: r["transactions"]),
        "failed": column(lambda r: r["failed"]),
        "skipped": column(lambda r: r["skipped"]),
        "rows": column(lambda r: r["rows"] / r["transactions"] if r["transactions"] else math.nan),
        "mean": column(lambda r: r["mean_ns"] if r["count"] else math.nan),
        "m2": column(lambda r: r["m2"]),
        "max": column(lambda r: r["max_ns"]),
        "throughput": column(throughput),
        **{name: quantile(at) for at, name in enumerate(QUANTILES)},
    }


def _column(rows: list[Summary], arm: str, groups: int, value: Callable[[Summary], float]) -> Array:
    import numpy as np

    out = np.full(groups, np.nan)
    for row in rows:
        if row["arm"] == arm:
            out[row["group"]] = value(row)
    return out
