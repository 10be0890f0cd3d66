"""Coverage of a recording: the state of every cell in every round, its silences and its restarts.

A round queries every cell. The cell may have collected again since the previous round, or not (*not refreshed*, which
is different from zero), its service may have restarted (*restart*), and its answer may be partial (*half*) or missing
(*no answer*).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NotRequired, TypedDict

from dbdyno.base.sections import Table, column, table
from dbdyno.cells.clocks import Clock
from dbdyno.cells.record import reports_of
from dbdyno.cells.series import MeasuredRecording

if TYPE_CHECKING:
    from dbdyno.evidence.run import Block, Run

COLLECTED, OLD, RESTART, HALF, NOTHING = (
    "collected",
    "not refreshed",
    "restart",
    "half an answer",
    "no answer",
)
STATES = (COLLECTED, OLD, RESTART, HALF, NOTHING)
SILENT_S = 120.0
"""Time without a new collection after which the silence is reported [s]; a cell normally collects once a minute."""


class CellClock(TypedDict):
    """Offset of a cell's clock from this machine's clock."""

    ahead_s: float
    certain: bool
    words: str


class Restart(TypedDict):
    """The round before which a cell's counters were reset, and how that was noticed."""

    round: int
    how: str


class CellCoverage(TypedDict):
    """Coverage of one cell: its state in each round, and its longest time without new data."""

    name: str
    states: list[int]
    counts: dict[str, int]
    collections: int
    silent_s: float
    restarts: list[Restart]
    problems: list[str]
    clock: NotRequired[CellClock]


class Coverage(TypedDict):
    """Coverage of a recording: times of the queries, each cell's coverage, late cells, and remarks."""

    rounds: int
    asked_s: list[float]
    states: list[str]
    cells: list[CellCoverage]
    late: list[str]
    about: str
    table: Table
    notes: list[str]


def coverage(recording: MeasuredRecording) -> Coverage:
    """Return the coverage of a recording: per cell its states, counts, silences, restarts and failures."""
    blocks = recording.run.blocks()
    times = _times(recording)
    resets = dict(_resets(recording))
    cells = [_cell(recording.run, blocks, cell, times.get(cell, {}), resets.get(cell, {})) for cell in recording.cells]
    for cell in cells:
        clock = recording.clocks.get(cell["name"], Clock())
        cell["clock"] = {"ahead_s": clock.ahead_s, "certain": clock.certain, "words": clock.offset_text}
    late = [cell["name"] for cell in cells if cell["silent_s"] >= SILENT_S]
    return {
        "rounds": len(blocks),
        "asked_s": [(block.started_ns - blocks[0].started_ns) / 1e9 for block in blocks],
        "states": list(STATES),
        "cells": cells,
        "late": late,
        "about": "A cell collects its metrics once a minute. If asked sooner, it has no new values: dbdyno shows "
        "neither zero nor a rate for such an interval.",
        "table": _table(cells),
        "notes": [f"{cell['name']}: {note}" for cell in cells for note in cell["problems"]],
    }


def _times(recording: MeasuredRecording) -> Mapping[str, dict[int, int]]:
    """Return the newest collection time by cell and round."""
    times: dict[str, dict[int, int]] = {}
    for cell, block, at_ns in recording.connection.execute(
        "select cell, block, max(at_ns) from readings group by all"
    ).fetchall():
        times.setdefault(cell, {})[int(block)] = int(at_ns)
    return times


def _resets(recording: MeasuredRecording) -> Iterator[tuple[str, dict[int, str]]]:
    """Yield, per cell, the rounds before which its counters were reset, and how that was noticed."""
    rows = recording.connection.execute(
        "select cell, block, any_value(metric), bool_or(metric is null) from resets group by all order by block"
    ).fetchall()
    by_cell: dict[str, dict[int, str]] = {}
    for cell, block, name, said in rows:
        how = "the service says so" if said else f"{name} fell"
        by_cell.setdefault(cell, {})[int(block)] = how
    yield from by_cell.items()


def _cell(
    run: Run, blocks: Sequence[Block], name: str, times: Mapping[int, int], resets: Mapping[int, str]
) -> CellCoverage:
    states = []
    last: int | None = None
    silent_since, silent_s = blocks[0].started_ns, 0.0
    problems: dict[str, int] = {}
    for block, told in zip(blocks, reports_of(run, blocks, name), strict=True):
        at_ns = times.get(block.index)
        state = _state(at_ns, last, told.get("problem"), block.index in resets)
        states.append(state)
        if told.get("problem"):
            problems[told["problem"]] = problems.get(told["problem"], 0) + 1
        if at_ns is None or at_ns == last:
            silent_s = max(silent_s, (block.started_ns - silent_since) / 1e9)
        else:
            silent_since = block.started_ns
        last = last if at_ns is None else at_ns
    return {
        "name": name,
        "states": [STATES.index(state) for state in states],
        "counts": {state: states.count(state) for state in STATES},
        "collections": len(set(times.values())),
        "silent_s": silent_s,
        "restarts": [{"round": at + 1, "how": how} for at, how in sorted(resets.items())],
        "problems": [f"{problem}{f' (in {n} rounds)' if n > 1 else ''}" for problem, n in problems.items()],
    }


def _state(at_ns: int | None, last: int | None, problem: str | None, reset: bool) -> str:
    if at_ns is None:
        return NOTHING
    if problem:
        return HALF
    if reset:
        return RESTART
    return OLD if at_ns == last else COLLECTED


def _table(cells: Sequence[CellCoverage]) -> Table:
    keys = [state for state in STATES if state in (COLLECTED, OLD) or any(cell["counts"][state] for cell in cells)]
    silent = column("silent_ns", "ns", "longest without a new collection")
    rows = [
        {"cell": cell["name"], **{key: cell["counts"][key] for key in keys}, "silent_ns": cell["silent_s"] * 1e9}
        for cell in cells
    ]
    return table("Rounds by cell", [column("cell", "text"), *map(column, keys), silent], rows)


FACTS = {
    "cell.makeModel": "model",
    "cell.releaseVersion": "release",
    "cell.flashCacheMode": "cache",
    "flashcache.size": "flash cache",
    "flashlog.size": "flash log",
    "iormplan.objective": "IORM",
    "iormplan.dbPlan": "database plan",
    "celldisks": "cell disks",
    "griddisks": "grid disks",
}
"""The facts about a cell that are shown, with their labels; a recording has further facts."""


def configuration_table(run: Run) -> list[Table]:
    """Return a table of the cells' configurations, with equal configurations in one row; empty if the run has none."""
    first = (run.manifest.configuration or {}).get("first") or {}
    alike: dict[tuple[str, ...], list[str]] = {}
    for cell, facts in first.items():
        alike.setdefault(tuple(facts.get(name, "") for name in FACTS), []).append(cell)
    rows = [
        {
            "cells": ", ".join(cells[:3]) + (f" and {len(cells) - 3} more" if cells[3:] else ""),
            **dict(zip(FACTS, values, strict=True)),
        }
        for values, cells in alike.items()
    ]
    shown = [name for name in FACTS if any(row[name] for row in rows)]
    if not shown:
        return []
    headings = [column("cells", "text"), *(column(name, "text", FACTS[name]) for name in shown)]
    return [table("What they are", headings, rows)]
