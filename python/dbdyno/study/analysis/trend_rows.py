"""Rows of a trend: the value of each arm in each run, and whether the run counts.

The value of a run is the geometric mean over its blocks: of the arm's own values (its level), or of their ratios to the
base arm in the same blocks. A machine that became slower changes every level and no ratio, so the ratio is followed
over time if the plan has a base arm. A run whose canaries (a loop on the CPU, an fsync) differ from most other runs was
made on a machine in another state: it is shown, but not used to find changes. If an arm or its base had failures in a
run, the arm's value is not used either, because the remaining transactions may be the quick ones.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbdyno.base.errors import EvidenceError
from dbdyno.base.trend_run import TrendRun
from dbdyno.evidence.run import Run
from dbdyno.stats.gates_losses import SHARE_MOST

if TYPE_CHECKING:
    from dbdyno.study.analysis.measured.measures import ArmMeasures

CANARIES = {"cpu_ns": 0.15, "fsync_ns": 1.0}
"""Largest log ratio of a run's canary to the median of all runs: 15 % for CPU, a factor of 2.7 for fsync."""


def bases_of(run: Run) -> dict[str, str]:
    """Return the base of each arm of a run that is compared with another arm."""
    names = [str(arm["name"]) for arm in run.manifest.arms]
    against = {str(arm["name"]): str(arm.get("against") or "") for arm in run.manifest.arms}
    bases = {name: against[name] if against[name] in names else names[0] for name in names}
    return {name: base for name, base in bases.items() if base != name}


def rows_of(runs: Sequence[Run], headline: str, bases: dict[str, str]) -> list[TrendRun]:
    """Return a row for each run; the value of an arm in `bases` is its ratio to its base, otherwise its level."""
    rows = [_row(run, headline, bases) for run in runs]
    _compare_machines(rows)
    return rows


def counts(row: TrendRun, arm: str, base: str | None) -> bool:
    """Return True if an arm's value in a run is used to find changes."""
    failed = row["failed"]
    return row["comparable"] and arm not in failed and base not in failed and bool(row["values"].get(arm))


def _row(run: Run, headline: str, bases: dict[str, str]) -> TrendRun:
    from dbdyno.stats.means import mean_interval
    from dbdyno.study.analysis.measured.sums import measures_of

    row: TrendRun = {
        "run": run.id,
        "started_at": str(run.manifest.started_at),
        "values": {},
        "lows": {},
        "highs": {},
        "levels": {},
        "failed": {},
    }
    try:
        measures = measures_of(run)
    except EvidenceError as error:
        return {**row, "blocks": 0, "canaries": {}, "unread": error.message}
    level, arms = float(run.manifest.plan["judge"]["level"]), {arm.label: arm for arm in measures.arms}
    for name, arm in arms.items():
        own, base = _logs(arm, headline), arms.get(bases.get(name, ""))
        row["levels"][name] = _size(mean_interval(own, level)[0])
        followed = [a - b for a, b in zip(own, _logs(base, headline), strict=True)] if base else own
        ends = mean_interval(followed, level)
        row["values"][name], row["lows"][name], row["highs"][name] = map(_size, ends)
        failed, good = arm.total("failed"), arm.total("transactions")
        if failed > SHARE_MOST * (failed + good):
            row["failed"][name] = failed / (failed + good)
    blocks = measures.arms[0].blocks
    row["canaries"] = {
        name: statistics.median(known)
        for name in CANARIES
        if (known := [block.canaries[name] for block in blocks if block.canaries.get(name)])
    }
    return {**row, "blocks": len(blocks)}


def _logs(arm: ArmMeasures, headline: str) -> list[float]:
    """Return the logarithms of an arm's values by block; a block without a value is NaN."""
    return [math.log(value) if value > 0 and math.isfinite(value) else math.nan for value in arm.values[headline]]


def _size(log: float) -> float | None:
    return math.exp(log) if math.isfinite(log) else None


def _compare_machines(rows: list[TrendRun]) -> None:
    """Mark the runs with usual values of the canaries as comparable."""
    usual = {
        name: statistics.median(known)
        for name in CANARIES
        if (known := [row["canaries"][name] for row in rows if name in row["canaries"]])
    }
    for row in rows:
        off = {name: row["canaries"][name] / usual[name] for name in row["canaries"]}
        row["off"] = off
        row["comparable"] = row["blocks"] > 0 and all(
            abs(math.log(ratio)) <= CANARIES[name] for name, ratio in off.items()
        )
