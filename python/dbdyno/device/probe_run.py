"""Runs of `dbdyno probe` as measurements of a device.

From a flash probe come its reads and its last rounds of overwriting, at the probe's depth. From a redo probe come the
writes of its log to one path, one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dbdyno.base.errors import DeviceError
from dbdyno.device.job import MeasuredJob
from dbdyno.evidence.query import connect
from dbdyno.evidence.run import Run, find_run, type_errors_as_evidence_errors

FLASH, REDO = "flash", "probe"
"""Kinds of the manifests of the two probes."""
ROUNDS = 5
"""Number of last overwriting rounds that are used: the window in which SNIA's specification judges a steady state."""
PATHS = ("first path", "second path")
"""Names of a redo probe's paths in its evidence."""
_POINTS = np.concatenate([np.linspace(0, 0.99, 100), 1 - np.geomspace(0.009, 1e-4, 20), [1.0]])
PHASES = {"read": "read", "overwrite": "write"}
"""Phases of a flash probe in which the device has already been written once, with the operation of each."""

_WRITES = """
select elapsed_ns, p2 from waits
where event = 'log file parallel write' and object = $path
  and block in (select block from slices where counts)
order by started_ns
"""


def probe_run(text: str, folder: Path) -> Run:
    """Return the run of a probe that `text` names.

    Raises:
        DeviceError: The run is not a run of a probe.
        EvidenceError: `text` names no run, or several.
    """
    run = find_run(text, folder)
    if run.manifest.kind not in (FLASH, REDO):
        raise DeviceError(
            "is not a run of `dbdyno probe`",
            where=run.id,
            next_step="fit the commits of a run with: dbdyno model calibrate RUN --calls commit",
        )
    return run


def is_flash_probe(run: Run) -> bool:
    """Return True for a run of `dbdyno probe flash`, False for one of `dbdyno probe redo`."""
    return run.manifest.kind == FLASH


def probe_jobs(runs: Sequence[Run]) -> list[MeasuredJob]:
    """Return the reads and the last overwrites of flash probes, one job each.

    Raises:
        DeviceError: No probe got as far as reading or overwriting.
    """
    jobs = [job for number, run in enumerate(runs, 1) for job in _jobs(run, f" of run {number}" * (len(runs) > 1))]
    if not jobs:
        raise DeviceError(
            "the probe ended before the device was completely written once: there is nothing to fit",
            where=runs[0].id,
            next_step="probe for longer (--for), or a smaller file (--file-size)",
        )
    return jobs


def _jobs(run: Run, which: str) -> Iterator[MeasuredJob]:
    depth = int(run.manifest.flash["depth"])
    with connect(run)[0] as connection, type_errors_as_evidence_errors("flash probe", run.id):
        for phase, operation in PHASES.items():
            blocks = [block for block in run.blocks() if block.report.get("phase") == phase][-ROUNDS:]
            seconds = sum(block.ended_ns - block.started_ns for block in blocks) / 1e9
            names = [block.index for block in blocks]
            if not names:
                continue
            sql = "select elapsed_ns from calls where block in (select unnest($blocks)) and error is null"
            found = connection.execute(sql, {"blocks": names}).fetchnumpy()["elapsed_ns"]
            us = np.asarray(found, dtype=np.float64) / 1e3
            if len(us) and seconds > 0:
                yield _job(f"{phase} at depth {depth}{which}", operation, depth, us, len(us) / seconds)


def redo_jobs(run: Run, path: int) -> tuple[list[MeasuredJob], str]:
    """Return the writes of a redo probe's log to its first (1) or second (2) path, and a sentence about their sizes.

    A log has one outstanding write at a time. The first and the second half of the writes are one job each, so that the
    second half shows the error of a device that is fitted to the first. Rates are per second of the time during which a
    write was outstanding.

    Raises:
        DeviceError: The run has no such path, several logs, or no writes.
    """
    logs = run.manifest.logs
    if len(logs) != 1:
        raise DeviceError(f"expected a probe of one log, found {len(logs)}", where=run.id, next_step="probe one log")
    if path > len(logs[0]["paths"]):
        raise DeviceError("the probe wrote to only one path", where=run.id, next_step="leave --path out")
    with connect(run)[0] as connection, type_errors_as_evidence_errors("redo probe", run.id):
        found = connection.execute(_WRITES, {"path": PATHS[path - 1]}).fetchnumpy()
    us, kb = np.asarray(found["elapsed_ns"], dtype=np.float64) / 1e3, found["p2"] * int(logs[0]["block_bytes"]) / 1024
    if not len(us):
        raise DeviceError("has no write", where=run.id, next_step="probe for longer: --for 10s")
    halves = zip(("first", "second"), np.array_split(us, 2), strict=True)
    jobs = [_job(f"{which} half of the writes", "write", 1, own, len(own) / own.sum() * 1e6) for which, own in halves]
    sizes = f"{kb.min():.3g} KB" if kb.min() == kb.max() else f"{kb.min():.3g} to {kb.max():.3g} KB"
    return jobs, f"The writes had {sizes}: the model uses these times for writes of any size, and for reads."


def _job(name: str, operation: str, depth: int, us: NDArray[np.float64], iops: float) -> MeasuredJob:
    table = _POINTS, np.quantile(us, _POINTS)
    return MeasuredJob(name, operation, depth, len(us), iops, float(us.mean()), table)
