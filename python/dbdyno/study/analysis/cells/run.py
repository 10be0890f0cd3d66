"""From the counters of a run on storage cells to its analysis: whether the flash log helped.

Each turn of a block has, per cell, the differences of the counters between two of the cell's own collections. A cell
counts in a block only if its counters are valid in every turn of it, so that all arms refer to the same cells. The
metric that the cells measure both with the flash log off and on is the mean time of all redo write requests (FL_RQ_TM_W
/ FL_RQ_W); its log ratio within a block is one observation, as in every run.

Limits: cells measure only their own I/O, not the time of a commit. The writes of other databases are in the same
counters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from dbdyno.base.errors import EvidenceError
from dbdyno.cells.listing import Reading
from dbdyno.cells.rates import Change, changes, totals
from dbdyno.cells.record import PREFIX
from dbdyno.evidence.run import Block, Run
from dbdyno.study.analysis.cells import verdict as cells_verdict
from dbdyno.study.analysis.cells.turns import DISK, Turn
from dbdyno.study.analysis.contract.rows import ArmRow, Model

_SQL = """
select block, arm, source, metric, object, unit, min_by(value, at_ns), max_by(value, at_ns),
  min(at_ns), max(at_ns)
from metrics where source like 'cell:%' and kind = 'counter'
  and (metric like 'FL%' or metric in (select unnest($1::varchar[])))
group by all order by all
"""


def model_of(run: Run) -> tuple[Model, list[str]]:
    """Return the analysis model, and the parts of evidence that could not be read.

    Raises:
        EvidenceError: No complete block counts.
    """
    from dbdyno.evidence.query import complete_parts, connect
    from dbdyno.study.analysis.contract.declarations import SCHEMA
    from dbdyno.study.analysis.measured.facts import run_facts

    whole = [block for block in run.blocks() if block.kind == "measure"]
    connection, _ = connect(run)
    _, broken = complete_parts(run, "metrics")
    with connection:
        tables = {name for (name,) in connection.execute("show tables").fetchall()}
        rows = connection.execute(_SQL, [list(DISK)]).fetchall() if "metrics" in tables else []
    turns, kept = _turns(run, whole, rows)
    if not kept:
        raise EvidenceError(
            "contains no complete block that counts",
            where=str(run.path),
            next_step="start the run again: a run on cells cannot be resumed",
        )
    model: Model = {
        "schema": SCHEMA,
        "kind": run.manifest.kind,
        "run": run_facts(run, kept),
        "arms": [_arm(run, at, own) for at, own in enumerate(turns)],
        "metrics": [],
        "classical": [],
        "statements": [],
        "figures": {"blocks": []},
        "method": {"sentences": _method(run), "overhead": None},
        "engine": _engine(run),
    }
    cells_verdict.add(model, run, turns, kept)
    return model, broken


def _turns(run: Run, blocks: list[Block], rows: list[tuple[Any, ...]]) -> tuple[list[list[Turn]], list[Block]]:
    """Return the turns of each arm (a list per arm, one turn per block that counts), and the blocks that count."""
    names = [arm["name"] for arm in run.manifest.arms]
    cells = set(run.manifest.iorm["cells"])
    found: dict[tuple[int, str], tuple[list[Reading], list[Reading]]] = {}
    for block, arm, source, metric, item, unit, old, new, first, last in rows:
        cell = str(source).removeprefix(PREFIX)
        sides = found.setdefault((int(block), arm), ([], []))
        for side, value, at_ns in zip(sides, (old, new), (first, last), strict=True):
            side.append(Reading(cell, metric, item, value, unit, repr(value), 0, int(at_ns)))
    turns: list[list[Turn]] = [[] for _ in names]
    kept = []
    for block in blocks:
        both = [changes(*found.get((block.index, name), ([], []))) for name in names]
        counting = _counting_cells(block, both, cells)
        if not counting:
            continue
        kept.append(block)
        for own, moved in zip(turns, both, strict=True):
            own.append(_turn([change for change in moved if change.cell in counting]))
    return turns, kept


def _counting_cells(block: Block, both: list[list[Change]], cells: set[str]) -> set[str]:
    """Return the cells whose counters are valid in every turn of a block."""
    wrong = {cell for turn in block.report["turns"] for cell in turn["wrong"]}
    for moved in both:
        flash = [change for change in moved if change.name.startswith("FL")]
        wrong |= {change.cell for change in flash if change.delta is None}
        wrong |= cells - {change.cell for change in flash}
    return cells - wrong


def _turn(moved: list[Change]) -> Turn:
    def sums(changes: list[Change]) -> dict[str, tuple[float, float]]:
        return {name: both for (name, _, _), both in totals(changes, "all").items()}

    flash = [change for change in moved if change.name.startswith("FL")]
    disks = [c for c in moved if c.name in DISK and not c.object.upper().startswith("F")]
    return Turn(sums(flash), sums(disks))


def _arm(run: Run, at: int, turns: list[Turn]) -> ArmRow:
    """Return an arm of the model; its operations are the redo writes that the cells counted."""
    about = run.manifest.arms[at]
    texts = set(about["changes"].values())
    writes = math.fsum(_known_values(turn.difference("FL_RQ_W") for turn in turns))
    times = math.fsum(_known_values(turn.difference("FL_RQ_TM_W") for turn in turns))
    rates = list(_known_values(turn.values()["redo_rate"] for turn in turns))
    return {
        "index": at,
        "name": about["name"],
        "description": f"{about['description']}; operations are redo writes, as the cells count them",
        "changes": {"every cell": texts.pop()} if len(texts) == 1 else about["changes"],
        "sessions": None,
        "rate_per_s": None,
        "baseline": at == 0,
        "ops": round(writes),
        "errors": None,
        "retries": 0,
        "skipped": 0,
        "throughput_per_s": math.fsum(rates) / len(rates) if rates else None,
        "mean_ns": times * 1000 / writes if writes else None,
        "sd_ns": None,
        "quantiles_ns": {},
        "max_ns": None,
    }


def _known_values(values: Iterator[float]) -> Iterator[float]:
    return (value for value in values if not math.isnan(value))


def _method(run: Run) -> list[str]:
    manifest = run.manifest
    judge = manifest.plan["judge"]
    return [
        f"The arms alternate in turns, because {manifest.switch_reason}. Each block has one turn of every arm, in "
        f"an order drawn from seed {manifest.seed} and mirrored in the next block.",
        "ALTER IORMPLAN switched the arms on every cell, and each cell's plan was read again. A turn begins with "
        "the first collection of a cell after that, and ends with a collection "
        f"{(manifest.turn_ns or 0) / 1e9:g} s later by the cell's own clock.",
        "The databases' own users made the load. If the load changed between turns, that is noise "
        "here; the random order keeps it from favouring an arm.",
        "The unit of inference is the block. Each block gives one number per arm and metric, "
        "over the cells with valid counters in all its turns. The log of the arms' ratio is one "
        f"observation. Intervals are Student's t at {judge['level'] * 100:g} % over blocks; a "
        "studentised bootstrap over blocks is shown beside them.",
        f"Differences within {judge['threshold'] * 100:g} % count as none. The headline metric was "
        "named before the run and is tested by itself; the others share a false-discovery rate "
        "(Benjamini and Hochberg).",
        "Cells measure only their own part of a redo write: without the network, and without the "
        "database's work before and after.",
    ]


def _engine(run: Run) -> dict[str, object]:
    """Return facts about the cells, and the IORM plans found on them."""
    targets, iorm = run.manifest.targets, run.manifest.iorm
    facts: dict[str, object] = {
        "cells": ", ".join(targets),
        "databases": ", ".join(iorm["databases"]),
    }
    for key in dict.fromkeys(key for own in targets.values() for key in own if key != "plan"):
        values = dict.fromkeys(str(own.get(key, "–")) for own in targets.values())
        facts[key] = ", ".join(values)
    settings = [
        {"name": cell, "value": own["plan"], "source": "found at the start, restored"} for cell, own in targets.items()
    ]
    return {"facts": facts, "settings": settings}
