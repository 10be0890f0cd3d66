"""The log device and the CPU time of a flush, derived from commit times if an arm's waits were not timed exactly.

The time of a commit is a round trip, the CPU time of its flush, and the time of the device. The round trip takes as
long as the cheapest statement. The CPU time of a flush is the CPU time of a transaction minus that of its statements
and wake-ups.

Limits: one session only, because with several a commit also waits for the flushes of others.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from dbdyno.base.json_types import JsonObject
from dbdyno.study.prediction.device import LEAST, NAME, LogDevice, fit_device
from dbdyno.study.prediction.observation import MARIADB, Observation
from dbdyno.study.prediction.parameter import DEFAULT, MEASURED, Parameter, measured_parameter
from dbdyno.study.prediction.sizes import PAGE_BYTES
from dbdyno.study.prediction.slopes import slope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SYNC_REQUESTS = 2
"""Number of requests that a sync sends to the device: one to write the pages, one to flush the cache."""
SERVED_US, SERVED_BY_MOUNT_US = 20.0, 130.0
"""CPU time of another process that serves a sync, on a disk and on a mount [us]."""
SERVED = "kernel workers, ext4 on an Intel Xeon: 10 to 50 us of CPU outside the server for each log write"
SERVED_BY_MOUNT = "dbdyno's mount on an Intel Xeon: 45 us of its request thread, 85 us of its device thread"
_OFF = ("off", "false", "no", "0")


def needs_commits(observation: Observation) -> bool:
    """Return True if the commits of an arm on PostgreSQL show its log device better than its waits do."""
    commits = int((observation.calls["kind"] == "commit").sum())
    return (
        observation.engine != MARIADB
        and observation.fidelity == "read"
        and observation.sessions == 1
        and commits >= LEAST
        and any(observation.steps.changes)
        and observation.settings.get("synchronous_commit", "on").lower() not in _OFF
    )


def flush_cpu_us(observation: Observation, known_us: float) -> Parameter:
    """Return the CPU time of a flush: that of a transaction minus `known_us` for its statements and wake-ups."""
    values = [
        max(r["on_cpu_ns"] / r["transactions"] / 1e3 - known_us, 0.0) for r in observation.reports if r["transactions"]
    ]
    return measured_parameter(
        "flush_us", values, "CPU per transaction beyond that of its statements and wake-ups", "us"
    )


def served_parameters(observation: Observation) -> list[Parameter]:
    """Return the number of requests of a sync, and the CPU time of the process that serves them."""
    about = observation.run.manifest.arms[observation.number]
    target: JsonObject = observation.run.manifest.targets.get(str(about["target"])) or {}
    mounted = str(target.get("data_file_system") or "").startswith("fuse")
    us, how = (SERVED_BY_MOUNT_US, SERVED_BY_MOUNT) if mounted else (SERVED_US, SERVED)
    return [
        Parameter("sync_requests", SYNC_REQUESTS, DEFAULT, "fdatasync: writes the pages, then empties the cache"),
        Parameter("sync_served_us", us, DEFAULT, how, unit="us"),
    ]


def device_of_commits(observation: Observation, flush_us: float, write_per_kb: float, served_us: float) -> LogDevice:
    """Return the log device of an arm on PostgreSQL, from its commits.

    Args:
        observation: Observation of the arm.
        flush_us: CPU time of a flush of mean size [us].
        write_per_kb: The part of this CPU time that depends on the flush's size [us/KB].
        served_us: CPU time of the process that serves a sync [us].
    """
    import numpy as np

    commits = np.flatnonzero(observation.calls["kind"] == "commit")
    redo = observation.calls["redo_bytes"][commits]
    kb = np.where(redo > 0, redo + PAGE_BYTES, 0) / 1024.0
    return device_by_commits(observation, commits, kb, flush_us, write_per_kb=write_per_kb, served_us=served_us)


def device_by_commits(
    observation: Observation,
    commits: NDArray[np.int64],
    kb: Floats,
    flush_us: float,
    servers: int = 1,
    *,
    write_per_kb: float = 0.0,
    served_us: float = 0.0,
) -> LogDevice:
    """Return the log device, from the time of commits minus that of a round trip.

    Args:
        observation: Observation of the arm.
        commits: Positions of its commits among its calls.
        kb: Log that each commit flushes [KB].
        flush_us: CPU time of a flush [us].
        servers: Number of syncs that the device does at the same time.
        write_per_kb: The part of the CPU time of a flush that depends on its size [us/KB].
        served_us: CPU time of the process that serves a sync [us].
    """
    import numpy as np

    elapsed = observation.calls["elapsed_ns"]
    begins = _cheapest(observation)
    round_trip_us = float(np.median(elapsed[begins])) / 1e3
    times_us = elapsed[commits] / 1e3 - round_trip_us - flush_us
    sync_us = max(float(elapsed[commits].mean() - elapsed[begins].mean()) / 1e3 - flush_us, 0.0)
    whole = _per_kb(kb, times_us)
    added = replace(whole, **{key: max(getattr(whole, key) - write_per_kb, 0.0) for key in ("value", "low", "high")})
    if whole.value:
        times_us = times_us - max(whole.value, write_per_kb) * kb + write_per_kb * float(kb.mean())
    times_us = np.maximum(times_us - served_us, 1.0)
    how = f"{len(commits)} commits beyond the cheapest round trip ({round_trip_us:.3g} us) and the CPU of a flush"
    found = fit_device(times_us, observation.calls["started_ns"][commits], added, how, servers)
    return replace(found, sync_us=sync_us, notes=[f"Device: {text}" for text in found.notes])


def _cheapest(observation: Observation) -> NDArray[np.bool_]:
    """Return the calls that only make a round trip: `begin`, else the statement with the lowest median."""
    import numpy as np

    calls = observation.calls
    begins: NDArray[np.bool_] = calls["kind"] == "begin"
    if begins.any():
        return begins
    best, least_ns = begins, math.inf
    for statement, kind in zip(observation.steps.statements, observation.steps.kinds, strict=True):
        own = (calls["kind"] == kind) & (calls["statement"] == statement)
        if kind != "commit" and own.any() and (median_ns := float(np.median(calls["elapsed_ns"][own]))) < least_ns:
            best, least_ns = own, median_ns
    return best


def _per_kb(kb: Floats, times_us: Floats) -> Parameter:
    key = f"devices.{NAME} write_us_per_kb"
    found = slope(kb, times_us)
    if found is None:
        return Parameter(key, 0.0, DEFAULT, "sizes do not differ in this arm")
    how = "slope of commit time over the transaction's log size"
    return Parameter(key, found[0], MEASURED, how, found[1], found[2], "us/KB")
