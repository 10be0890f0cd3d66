"""A run and its arms as rows of analysis.json: what they are, and what they did."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dbdyno.evidence.run import Block, Run
from dbdyno.study.analysis.contract.rows import ArmRow, RunRow
from dbdyno.study.analysis.measured.evidence_kind import in_virtual_time
from dbdyno.study.analysis.measured.measures import QUANTILES, ArmMeasures, Measures
from dbdyno.study.analysis.measured.timeline import timeline

IMPORTED = "imported"
"""Value of the switch between arms in an imported run."""


def is_open(run: Run) -> bool:
    """Return True if all arms ran in an open loop."""
    return all(arm["rate_per_s"] for arm in run.manifest.arms)


def run_facts(run: Run, blocks: list[Block]) -> RunRow:
    """Return the run as a row of the model; `blocks` are those that count."""
    manifest = run.manifest
    switch = manifest.switch
    slices = manifest.slice_ns
    orders = {"slices": "randomised ABBA", "model": "each arm from the same state", IMPORTED: "in the program's order"}
    order = orders.get(switch, "random, mirrored from block to block")
    return {
        "id": run.id,
        "title": manifest.title,
        "question": manifest.question,
        "status": run.status,
        "started_at": manifest.started_at,
        "duration_s": _duration_s(run),
        "virtual_s": sum(b.ended_ns - b.started_ns for b in blocks) / 1e9 if in_virtual_time(run) else None,
        "tool_version": manifest.tool_version,
        "seed": None if switch == IMPORTED else manifest.seed,
        "blocks_planned": manifest.blocks_planned,
        "blocks_whole": len(blocks),
        "warmup_blocks": sum(block.kind == "warmup" for block in run.blocks()),
        "switch": switch,
        "slice_ms": slices / 1e6 if slices else None,
        "order": order,
        "randomised": switch != IMPORTED,
        "open_loop": is_open(run),
        "threshold": manifest.plan["judge"]["threshold"],
        "plan_toml": manifest.plan["toml"],
    }


def _duration_s(run: Run) -> float | None:
    """Return the elapsed time of the run [s]; in older evidence, it is counted from the start of the first block."""
    if in_virtual_time(run) or run.manifest.has("wall_s"):
        return run.manifest.wall_s if run.manifest.has("wall_s") else None
    return timeline(run.blocks(), run.manifest.resumed).length_s


def arm_of(run: Run, measures: Measures, at: int, latencies: Any) -> ArmRow:
    """Return an arm as a row of the model: what it is, and what it did."""
    about = run.manifest.arms[at]
    return {
        "index": at,
        "name": about["name"],
        "description": about["description"],
        "changes": about["changes"],
        "sessions": about["sessions"],
        "rate_per_s": about["rate_per_s"],
        "baseline": at == 0,
        **arm_numbers(measures.arms[at], at, latencies),
    }


def arm_numbers(arm: ArmMeasures, at: int, latencies: Any) -> ArmRow:
    """Return the counts and latencies of an arm over all its blocks that count."""
    import numpy as np

    reports = [own for block in arm.blocks for own in block.report["arms"] if own["arm"] == at]
    values = arm.values
    n = latencies.size
    between = np.nansum(values["count"] * (values["mean"] - _mean(values)) ** 2)
    spread = (np.nansum(values["m2"]) + between) / max(n - 1, 1)
    return {
        "ops": int(n),
        "errors": int(np.nansum(values["failed"])),
        "retries": sum(own["retries"] for own in reports),
        "skipped": int(np.nansum(values["skipped"])),
        "throughput_per_s": _geometric(values["throughput"]),
        "mean_ns": _mean(values) if n else None,
        "sd_ns": math.sqrt(spread) if n > 1 else None,
        "quantiles_ns": {name: float(np.quantile(latencies, q)) if n else None for name, q in QUANTILES.items()},
        "max_ns": int(latencies[-1]) if n else None,
    }


def _geometric(values: Any) -> float | None:
    """Return the geometric mean of values over the blocks, as for the metrics; None if no block has a value."""
    import numpy as np

    known = values[np.isfinite(values) & (values > 0)]
    return float(np.exp(np.log(known).mean())) if known.size else None


def _mean(values: Mapping[str, Any]) -> float:
    """Return the mean latency over all operations, computed from the means of the blocks."""
    import numpy as np

    weights = np.where(np.isfinite(values["mean"]), values["count"], 0.0)
    total = float(np.nansum(weights))
    return float(np.nansum(weights * np.nan_to_num(values["mean"]))) / total if total else math.nan
