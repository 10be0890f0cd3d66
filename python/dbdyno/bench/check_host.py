"""Doctor checks of the machines: the server's location, its disk, and this machine's CPU and clock."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.bench.check import Outcome
from dbdyno.bench.host.machine import clock_source, cpu_governor, file_system, steal_share

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

STEAL_SHARE_HIGH = 0.02
"""Lowest share of CPU time stolen by the hypervisor at which the doctor warns."""

CLOCK_NS_HIGH = 200
SLOW_CLOCKS = frozenset({"acpi_pm", "hpet", "jiffies", "refined-jiffies"})


def machine(target: Postgres, conn: Connection) -> Outcome:
    """Check whether the server runs on this machine."""
    if target.is_here(conn):
        return Outcome(True, "this machine", "the server's CPU and disk counters are recorded; the load shares its CPU")
    return Outcome(
        None,
        "another machine (or another container)",
        "CPU and disk counters come from this client machine; each latency includes the network",
        "run dbdyno on the server's machine if you need its counters",
    )


def data_folder(target: Postgres, conn: Connection) -> Outcome:
    """Check which file system and device hold the server's data folder."""
    path = target.data_directory(conn) if target.is_here(conn) else None
    if path is None:
        return Outcome(None, "not visible", "the fsync canary measures a temporary folder instead")
    disk = file_system(path)
    readable = os.access(path, os.R_OK | os.X_OK)
    found = f"{path}, {disk.kind if disk else '?'} on {disk.device if disk else '?'}"
    if disk and disk.in_memory:
        return Outcome(False, found, "it is in memory: commits cost no disk I/O", "move it to a disk")
    return Outcome(True, f"{found}{'' if readable else ' (not readable)'}", "the disk under it is known")


def proc(_target: Postgres, _conn: Connection) -> Outcome:
    """Check whether this machine provides CPU and disk counters in /proc."""
    if Path("/proc/stat").exists() and Path("/proc/diskstats").exists():
        return Outcome(True, "/proc", "CPU and disk counters of this machine")
    return Outcome(None, "no /proc", "no CPU and disk counters")


def governor(_target: Postgres, _conn: Connection) -> Outcome:
    """Check whether the CPU frequency governor keeps the frequency constant."""
    governor = cpu_governor()
    if governor in (None, "performance"):
        return Outcome(True, governor or "not set by this system", "steady")
    return Outcome(
        False,
        f"governor '{governor}'",
        "an idle processor wakes slowly: a few sessions may look slower than many",
        "run `cpupower frequency-set -g performance` for the time of the run",
    )


def steal(_target: Postgres, _conn: Connection) -> Outcome:
    """Check what share of CPU time a hypervisor has taken from this machine since boot."""
    share = steal_share()
    if share is None:
        return Outcome(None, "not known")
    return Outcome(
        share < STEAL_SHARE_HIGH,
        f"{share:.1%} since boot",
        "a hypervisor gives this machine's CPU time to others: more noise, so more blocks are needed"
        if share >= STEAL_SHARE_HIGH
        else "neighbours take little CPU time",
        "use a dedicated machine, or more blocks" if share >= STEAL_SHARE_HIGH else "",
    )


def clock(_target: Postgres, _conn: Connection) -> Outcome:
    """Check whether reading the clock is cheap."""
    source = clock_source() or "not known"
    cost_ns = clock_read_ns()
    slow = source in SLOW_CLOCKS or cost_ns > CLOCK_NS_HIGH
    return Outcome(
        not slow,
        f"{source}, {cost_ns} ns a reading",
        "every operation reads it twice" + (", and so does the engine's I/O timing" if slow else ""),
        "use the clock source tsc if the machine offers it" if slow else "",
    )


def clock_read_ns(readings: int = 20_000) -> int:
    """Return the mean time of one clock reading in ns, including the overhead of the measuring loop."""
    started = time.perf_counter_ns()
    for _ in range(readings):
        time.perf_counter_ns()
    return (time.perf_counter_ns() - started) // readings
