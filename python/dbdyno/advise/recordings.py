"""Evidence of a recording of storage cells: its report's counts and tests as rows that rules read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from dbdyno.advise.facts import Facts
from dbdyno.base.json_types import JsonObject
from dbdyno.cells.coverage import coverage
from dbdyno.cells.series import MeasuredRecording, open_series
from dbdyno.judge.cells_explanation import slow_disks, work_of_recording
from dbdyno.judge.cells_flash import ALL, flash_cache, flash_log
from dbdyno.judge.cells_skew import skew_page

if TYPE_CHECKING:
    from dbdyno.evidence.run import Run


class CellWork(NamedTuple):
    """One kind of request on one kind of disk, over all cells: rate, mean time per request, total time per second."""

    part: str
    kind: str
    disks: int
    per_s: float
    each_ns: float
    busy_ns: float
    rounds: int


class SlowDisk(NamedTuple):
    """A disk whose request time certainly differs from its siblings': both times, and the excess time per second."""

    cell: str
    disk: str
    part: str
    kind: str
    ratio: float
    low: float
    high: float
    each_ns: float
    usual_ns: float
    excess_ns: float


class CellCache(NamedTuple):
    """Hits and misses of the flash caches per second."""

    hits_per_s: float
    misses_per_s: float


class CellLog(NamedTuple):
    """Work of the flash logs: redo writes, writes that bypassed them, prevented outliers, and other outliers."""

    writes: float
    requests: float
    passed_by: tuple[tuple[str, str, float], ...]
    prevented: float
    outliers: float


class SmartScans(NamedTuple):
    """Megabytes of smart scans.

    The fields are the megabytes that were eligible, returned, passed through unfiltered, saved by storage indexes, and
    sent back to the processors of the database server.
    """

    eligible: float
    returned: float
    passed: float
    saved: float
    reverse: float


class CellState(NamedTuple):
    """How a cell answered: number of rounds, rounds answered, its first problem, restarts, and a text about its clock.

    `silent_from` is the first round after its last answer (None if it answered to the end).
    """

    name: str
    rounds: int
    answered: int
    silent_from: int | None
    problem: str
    restarts: int
    clock: str
    clock_is_certain: bool


RECORDED: frozenset[type] = frozenset((CellWork, SlowDisk, CellCache, CellLog, SmartScans, CellState))
"""Kinds of evidence that only recordings of cells have."""
_SMART = {
    "eligible": "SIO_IO_EL_OF",
    "returned": "SIO_IO_OF_RE",
    "passed": "SIO_IO_PA_TH",
    "saved": "SIO_IO_SI_SV",
    "reverse": "SIO_IO_RV_OF",
}


def read(run: Run) -> Facts:
    """Return the evidence of a recording.

    Raises:
        CellsError: the recording has no metrics of cells.
    """
    with open_series(run) as found:
        rows: dict[type, list[Any]] = {
            CellState: list(_states(found)),
            SmartScans: list(_scans(found)),
            **_work(found),
        }
        seconds = (found.ended_ns - found.began_ns) / 1e9
        if (cache := flash_cache(found)) is not None and seconds > 0:
            whole = _whole(cache["cells"])
            rows[CellCache] = [CellCache((whole["hits"] or 0.0) / seconds, (whole["misses"] or 0.0) / seconds)]
        log = flash_log(found)
        rows[CellLog] = [_log(log)] if log is not None else []
        rows.setdefault(CellCache, [])
        rounds = f"{found.intervals} intervals of {len(found.cells)} cells"
    return Facts(run.id, "recording", rows, {}, f"{rounds}, {seconds:,.0f} s")


def _whole(lines: list[JsonObject]) -> JsonObject:
    return next((one for one in lines if one["cell"] == ALL), lines[-1])


def _work(recording: MeasuredRecording) -> dict[type, list[Any]]:
    import numpy as np

    work = work_of_recording(recording)
    if not work.keys:
        return {CellWork: [], SlowDisk: []}
    time, requests = work.rates_per_s(np.ones(work.rounds, dtype=bool))
    parts = []
    for part in work.parts:
        rows = work.rows(part)
        busy, rate = float(time[rows].sum()), float(requests[rows].sum())
        if rate > 0:
            parts.append(CellWork(*part, len(rows), rate, busy / rate, busy, work.rounds))
    skew = skew_page(recording.siblings(), recording.intervals)["rows"]
    slow = [SlowDisk(**one) for one in slow_disks(work, skew)]
    return {CellWork: parts, SlowDisk: slow}


def _log(log: JsonObject) -> CellLog:
    whole = _whole(log["cells"])
    passed = [(str(one["reason"]), str(one["words"]), float(sum(one["cells"].values()))) for one in log["passed_by"]]
    total = sum(one[2] for one in passed)
    writes = float(whole["writes"] or 0.0)
    requests = float(whole["requests"] or writes + total)
    outliers = (float(whole[name] or 0.0) for name in ("prevented", "actual"))
    return CellLog(writes, requests, tuple(sorted(passed, key=lambda one: -one[2])), *outliers)


def _scans(recording: MeasuredRecording) -> Iterator[SmartScans]:
    totals = {}
    for name, metric in _SMART.items():
        own = [one for one in recording.measures.values() if one.name == metric]
        totals[name] = float(sum(one.total(cell) for one in own for cell in one.cells))
    if totals["eligible"] > 0:
        yield SmartScans(**totals)


def _states(recording: MeasuredRecording) -> Iterator[CellState]:
    covered = coverage(recording)
    nothing = covered["states"].index("no answer")
    for cell in covered["cells"]:
        states = cell["states"]
        first = len(states)
        while first and states[first - 1] == nothing:
            first -= 1
        yield CellState(
            cell["name"],
            len(states),
            sum(one != nothing for one in states),
            first if first < len(states) else None,
            str(next(iter(cell["problems"]), "")),
            len(cell["restarts"]),
            str(cell["clock"]["words"]),
            bool(cell["clock"]["certain"]),
        )
