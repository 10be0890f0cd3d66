"""Results of a run in one small file: its description, and the metrics of each arm in each block.

    {"schema": 1, "kind": "result", "run": "2026-11-28T17-32-08Z-...", "machine": {"name": "9c1f02ab", ...},
     "commit": "3f2a91c...", "manifest": {"plan": ..., "arms": ..., "started_at": ...},
     "blocks": [{"index": 2, "canaries": {...}}], "values": {"base": {"throughput": [812.3, ...]}}}

The file has no evidence. A result can be followed over time like the run from which it was made. It is never changed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbdyno.base.errors import EvidenceError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.manifest import Section
from dbdyno.evidence.run import Block, Run, type_errors_as_evidence_errors
from dbdyno.study.analysis.measured.sums import SumMeasures, measures_of, measures_of_rows

SCHEMA = 1
KIND = "result"
NAMES = ("transactions", "failed", "skipped", "throughput", "mean", "max", "p50", "p90", "p99", "p99.9")
"""Metrics of a block that a result contains."""
FIELDS = (
    *("title", "kind", "bench", "study", "started_at", "dated_by"),
    *("tool_version", "question", "arms", "plan", "verdict"),
)
"""Fields of the manifest that a result contains; of the plan, all but its text, target, and SQL around the load."""
DIGITS = 7
LARGEST = 16 << 20


class ResultRun(Run):
    """A run of which only the result was kept; `path` is the result's file."""

    def __init__(self, path: Path, content: JsonObject) -> None:
        with type_errors_as_evidence_errors("result", str(path)):
            self.content = content
            self.run_id = str(content["run"])
            self.machine = str(content["machine"]["name"])
            self.commit = str(content.get("commit") or "")
            manifest = {"schema": SCHEMA, "status": "complete", "seed": 0, **content["manifest"]}
            super().__init__(path, Section(manifest, reads={"evidence": "sums", "virtual": False, "parts": []}))
            self.kept = [_block(at, row) for at, row in enumerate(content["blocks"])]
            self.rows = _rows(content["values"], self.kept)
            names = [str(arm["name"]) for arm in self.manifest.arms]
            if not names or not set(content["values"]) <= set(names) or not self.manifest.plan["judge"]["level"]:
                raise ValueError("the arms of the result are not those of its plan")

    @property
    def id(self) -> str:
        """Return the name of the original run."""
        return self.run_id

    def blocks(self) -> list[Block]:
        """Return the blocks with their canaries."""
        return self.kept

    def measures(self) -> SumMeasures:
        """Return the values of the arms by block."""
        return measures_of_rows(self, self.kept, self.rows, [])


def result_of(run: Run, machine: Mapping[str, object], commit: str = "") -> JsonObject:
    """Return the result of a complete run.

    Raises:
        EvidenceError: The run is not complete, or its evidence has no values of arms by block.
    """
    if run.status != "complete":
        raise EvidenceError(f"is {run.status}, not complete", where=run.id, next_step="finish the run, then push it")
    if not run.manifest.has("plan") or run.manifest.reads.get("evidence") not in ("operations", "sums"):
        raise EvidenceError("has no timed arms", where=run.id, next_step="push only runs of plans")
    measures = measures_of(run)
    manifest = {name: getattr(run.manifest, name) for name in FIELDS if run.manifest.has(name)}
    manifest["plan"] = _plan(manifest["plan"])
    blocks = measures.arms[0].blocks
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "run": run.id,
        "machine": dict(machine),
        "commit": commit,
        "engine": _engine(run),
        "manifest": manifest,
        "blocks": [{"index": one.index, "canaries": _round_values(one.canaries)} for one in blocks],
        "values": {
            arm.name: {name: [_number(value) for value in arm.values[name]] for name in NAMES if name in arm.values}
            for arm in measures.arms
        },
    }


def parse_result(text: bytes, where: str) -> ResultRun:
    """Return the result in a file's text.

    Raises:
        EvidenceError: The file is not a result, or cannot be read.
    """
    try:
        content = json.loads(text, object_hook=Section) if len(text) <= LARGEST else None
    except (ValueError, RecursionError) as error:
        raise EvidenceError(
            f"is not complete JSON: {str(error)[:100]}",
            where=where,
            next_step="restore the file from a copy, or push the run again",
        ) from error
    if not isinstance(content, dict) or content.get("kind") != KIND or content.get("schema") != SCHEMA:
        raise EvidenceError(
            f"is not a result of schema {SCHEMA}",
            where=where,
            next_step="use the version of dbdyno that wrote the result",
        )
    try:
        return ResultRun(Path(where), content)
    except EvidenceError as error:
        raise EvidenceError(error.message, where=where) from error


def _plan(plan: Mapping[str, Any]) -> JsonObject:
    """Return a plan without its target, and without its text unless runs of builds are compared by that text."""
    left_out = ("dsn",) if plan.get("of_builds") else ("dsn", "toml")
    return {key: value for key, value in plan.items() if key not in left_out}


def _engine(run: Run) -> str:
    facts: Mapping[str, object] = next(iter(run.manifest.targets.values()), {}) if run.manifest.has("targets") else {}
    return str(facts.get("version", ""))[:200]


def _block(at: int, row: Mapping[str, Any]) -> Block:
    canaries = {str(name): float(value) for name, value in row["canaries"].items() if float(value) > 0}
    return Block(int(row["index"]), "measure", at, at + 1, 0, [], canaries=canaries, report={"arms": []})


def _rows(values: Mapping[str, Any], blocks: list[Block]) -> list[tuple[str, int, str, float]]:
    found = []
    for arm, own in values.items():
        for metric, numbers in own.items():
            for block, number in zip(blocks, numbers, strict=True):
                if number is not None:
                    found.append((arm, block.index, metric, _finite(number)))
    return found


def _finite(number: object) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < 1e30:
        raise ValueError(f"{str(number)[:40]} is not a number")
    return float(number)


def _number(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def _round_values(values: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.{DIGITS}g}") for name, value in values.items() if math.isfinite(value)}
