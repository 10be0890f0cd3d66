"""Short, constant measurements before each block: CPU, disk sync, processors and their scheduler, round trip.

They distinguish a slow machine from a slow arm. A canary whose value changes during the run means that the arms should
not be compared without care: it is used as a covariate and reported as a warning, but no result is ever corrected by
it.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.bench.metrics import Metric

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

LOOP_STEPS, WRITE_BYTES, ROUND_TRIPS, MESSAGES = 50_000, 8192, 20, 100
STEPS = 200_000
"""Number of steps of the computation that a busy hyperthread of the same core slows down; about 1 ms in all."""
WAKE_UPS = 40
"""Number of wake-ups per kind for which the scheduler's choice of processor is observed; about 0.1 s in all."""


@dataclass(frozen=True, slots=True)
class Canaries:
    """Results of one canary measurement: medians, in ns unless another unit is given.

    Attributes:
        cpu_ns: Time of a fixed CPU loop.
        fsync_ns: Time to write 8 KiB and sync it, or None if the folder was not writable.
        wake_ns: CPU time to start an idle core, or None if there is only one core.
        busy_ratio: CPU time of a computation while all other processors compute, divided by its time while they do not;
            None if there is only one processor. Above 1 if processors are hyperthreads of one core.
        pulls: Share of woken threads that move to the waker's processor if they last ran on another one, which is busy.
        searches: Share of woken threads that move to an idle processor if they last ran on the waker's processor.
        searches_late: The same share if the idle processor has been idle for two milliseconds.
        round_trip_ns: Time of one round trip to the server.
        folder: The folder used for the fsync measurement.
        on_data_disk: True if that folder is on the disk that holds the server's data.
    """

    cpu_ns: int
    fsync_ns: int | None
    wake_ns: int | None
    busy_ratio: float | None
    pulls: float | None
    searches: float | None
    searches_late: float | None
    round_trip_ns: int
    folder: str
    on_data_disk: bool

    def metrics(self, at_ns: int) -> list[Metric]:
        """Return the canaries as rows of the `metrics` evidence with source `canary`, measured at UNIX time `at_ns`."""
        place = "data disk" if self.on_data_disk else "temporary folder"
        rows = [
            ("cpu", "", self.cpu_ns, "ns"),
            ("fsync", place, self.fsync_ns, "ns"),
            ("wake", "", self.wake_ns, "ns"),
            ("busy_ratio", "", self.busy_ratio, "ratio"),
            ("pulls", "", self.pulls, "ratio"),
            ("searches", "", self.searches, "ratio"),
            ("searches_late", "", self.searches_late, "ratio"),
            ("round_trip", "", self.round_trip_ns, "ns"),
        ]
        return [
            Metric("canary", "host", thing, name, at_ns, value, unit, "gauge")
            for name, thing, value, unit in rows
            if value is not None
        ]


def canary_folder(target: Postgres, conn: Connection) -> tuple[Path, bool]:
    """Return the folder for the fsync canary and whether it is on the disk that holds the server's data.

    Nothing is ever written into a server's data folder. For an embedded server the folder beside the data folder is
    used; for any other server a temporary folder, preferably one on the same file system as the data.
    """
    if target.engine is not None:
        return target.engine.folder, True
    temporary = [Path(tempfile.gettempdir()), Path("/var/tmp")]  # noqa: S108
    data = target.data_directory(conn) if target.is_here(conn) else None
    try:
        device = os.stat(data).st_dev if data else None  # noqa: PTH116  # the folder is not ours to walk
    except OSError:
        device = None
    for folder in temporary:
        if device is not None and folder.is_dir() and folder.stat().st_dev == device:
            return folder, True
    return temporary[0], False


def canaries(
    conn: Connection,
    folder: Path,
    on_data_disk: bool = False,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> Canaries:
    """Measure all canaries now, which takes a few tens of milliseconds; `clock` returns ns."""
    return measure_canaries(lambda: conn.execute("select 1").fetchall(), folder, on_data_disk, clock)


def measure_canaries(
    ask: Callable[[], object],
    folder: Path,
    on_data_disk: bool = False,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> Canaries:
    """Measure all canaries now, with `ask` as one round trip to the server and `clock` returning ns."""
    from dbdyno import _core

    pulls, searches, searches_late = _core.placement(WAKE_UPS) or (None, None, None)
    return Canaries(
        cpu_ns=_median([_time_of(clock, _count) for _ in range(5)]),
        fsync_ns=_fsync_ns(folder, clock),
        wake_ns=_core.wake_cost_ns(MESSAGES),
        busy_ratio=_core.busy_ratio(STEPS),
        pulls=pulls,
        searches=searches,
        searches_late=searches_late,
        round_trip_ns=_median([_time_of(clock, ask) for _ in range(ROUND_TRIPS)]),
        folder=str(folder),
        on_data_disk=on_data_disk,
    )


def host_canaries(folder: Path, clock: Callable[[], int] = time.perf_counter_ns) -> dict[str, float]:
    """Measure a machine without an engine: the CPU loop, and fsync in `folder` if it is writable, in ns."""
    found = {"cpu_ns": float(_median([_time_of(clock, _count) for _ in range(5)]))}
    fsync_ns = _fsync_ns(folder, clock)
    return found if fsync_ns is None else {**found, "fsync_ns": float(fsync_ns)}


def _fsync_ns(folder: Path, clock: Callable[[], int]) -> int | None:
    """Return the median time of five 8 KiB overwrites with fsync, in ns, or None on an `OSError`."""
    page = os.urandom(WRITE_BYTES)
    try:
        with tempfile.TemporaryFile(dir=folder, prefix="dbdyno-canary-", buffering=0) as file:

            def write() -> None:
                file.seek(0)
                file.write(page)
                os.fsync(file.fileno())

            write()
            return _median([_time_of(clock, write) for _ in range(5)])
    except OSError:
        return None


def _count() -> None:
    total = 0
    for step in range(LOOP_STEPS):
        total += step & 7


def _time_of(clock: Callable[[], int], work: Callable[[], object]) -> int:
    started = clock()
    work()
    return clock() - started


def _median(values: list[int]) -> int:
    return round(statistics.median(values))
