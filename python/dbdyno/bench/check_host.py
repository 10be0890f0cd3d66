"""Doctor checks of the machines: the server's location, its disk, and this machine's CPU and clock."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.bench.check import Check
from dbdyno.bench.host.machine import clock_source, cpu_governor, file_system, steal_share

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

STEAL_SHARE_HIGH = 0.02
"""Lowest share of CPU time stolen by the hypervisor at which the doctor warns."""

CLOCK_NS_HIGH = 200
SLOW_CLOCKS = frozenset({"acpi_pm", "hpet", "jiffies", "refined-jiffies"})


def machine(target: Postgres, conn: Connection) -> Check:
    """Check whether the server runs on this machine."""
    if target.is_here(conn):
        return Check(
            "server's machine",
            True,
            "this machine",
            "its CPU and disk counters are recorded; the load shares its CPU",
            "",
        )
    return Check(
        "server's machine",
        None,
        "another machine (or another container)",
        "CPU and disk counters are those of this client; the network is part of each latency",
        "run dbdyno on the server's machine if you need its counters",
    )


def data_folder(target: Postgres, conn: Connection) -> Check:
    """Check which file system and device hold the server's data folder."""
    name = "data folder"
    path = target.data_directory(conn) if target.is_here(conn) else None
    if path is None:
        return Check(name, None, "not visible", "the fsync canary measures a temporary folder instead", "")
    disk = file_system(path)
    readable = os.access(path, os.R_OK | os.X_OK)
    found = f"{path}, {disk.kind if disk else '?'} on {disk.device if disk else '?'}"
    if disk and disk.in_memory:
        return Check(name, False, found, "it is in memory: commits cost no disk", "move it to a disk")
    return Check(
        name,
        True,
        f"{found}{'' if readable else ' (not readable)'}",
        "the disk under it is known",
        "",
    )


def proc(_target: Postgres, _conn: Connection) -> Check:
    """Check whether this machine provides CPU and disk counters in /proc."""
    if Path("/proc/stat").exists() and Path("/proc/diskstats").exists():
        return Check("host counters", True, "/proc", "CPU and disk counters of this machine", "")
    return Check("host counters", None, "no /proc", "no CPU and disk counters", "")


def governor(_target: Postgres, _conn: Connection) -> Check:
    """Check whether the CPU frequency governor keeps the frequency constant."""
    governor = cpu_governor()
    if governor in (None, "performance"):
        return Check("CPU frequency", True, governor or "not set by this system", "steady", "")
    return Check(
        "CPU frequency",
        False,
        f"governor '{governor}'",
        "an idle processor is slow to wake: few sessions may look slower than many",
        "cpupower frequency-set -g performance, while the run lasts",
    )


def steal(_target: Postgres, _conn: Connection) -> Check:
    """Check what share of CPU time a hypervisor has taken from this machine since boot."""
    share = steal_share()
    if share is None:
        return Check("stolen CPU time", None, "not known", "", "")
    return Check(
        "stolen CPU time",
        share < STEAL_SHARE_HIGH,
        f"{share:.1%} since boot",
        "a hypervisor gives this machine's time to others: more noise, more blocks needed"
        if share >= STEAL_SHARE_HIGH
        else "little is taken by neighbours",
        "use a machine of its own, or more blocks" if share >= STEAL_SHARE_HIGH else "",
    )


def clock(_target: Postgres, _conn: Connection) -> Check:
    """Check whether reading the clock is cheap."""
    source = clock_source() or "not known"
    cost_ns = clock_read_ns()
    slow = source in SLOW_CLOCKS or cost_ns > CLOCK_NS_HIGH
    return Check(
        "clock",
        not slow,
        f"{source}, {cost_ns} ns a reading",
        "every operation reads it twice" + (", and the engine's I/O timing too" if slow else ""),
        "prefer the clock source tsc where the machine offers it" if slow else "",
    )


def clock_read_ns(readings: int = 20_000) -> int:
    """Return the mean time of one clock reading in ns, including the overhead of the measuring loop."""
    started = time.perf_counter_ns()
    for _ in range(readings):
        time.perf_counter_ns()
    return (time.perf_counter_ns() - started) // readings
