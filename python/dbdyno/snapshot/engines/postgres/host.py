"""Processor time of the server and of its whole host, if the server runs on this machine.

    others = busy (/proc/stat, all processors, steal included) - the server's processes, ended ones included

A server's processes are children of the postmaster: the running ones are added up, and ended ones are included in the
kernel's sum over waited-for children. The process with the pid that the server reports is checked to be the server: it
and its parent are named `postgres`, and the parent started when the server says it did. In another container, or behind
a proxy, the check fails, and nothing is reported. Limit: what a collector or a client on this host uses counts as used
by others.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.json_types import JsonObject

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

PROC = Path("/proc")
START_TOLERANCE_S = 30.0
"""Largest difference in seconds between the server's start time by its own clock and by the kernel's."""
_BUSY = (0, 1, 2, 5, 6, 7)
"""Columns user, nice, system, irq, softirq, steal of /proc/stat, see proc(5); guests' use is included in user."""
_PARENT, _TIMES, _STARTED = 1, slice(11, 15), 19
"""Positions in /proc/PID/stat after the name: the parent; utime, stime, cutime, cstime; starttime."""


def read(backend: int, started_us: int | None, proc: Path = PROC) -> JsonObject:
    """Return the entry `host` of a snapshot's facts; empty if the server is not on this machine.

    `backend` is the pid, as the server reports it, of the process that serves dbdyno's own session.
    """
    try:
        parent = int(_of(proc / str(backend))[_PARENT])
        known = _of(proc / str(parent))
        if started_us is None or abs(_started_s(int(known[_STARTED])) - started_us / 1e6) > START_TOLERANCE_S:
            return {}
        children = (proc / str(parent) / "task" / str(parent) / "children").read_text().split()
        used = sum(sum(map(int, fields[_TIMES])) for fields in (known, *_alive(proc, children)))
        busy = (proc / "stat").read_text().split("\n", 1)[0].split()[1:]
        boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
    except (OSError, ValueError, IndexError):
        return {}
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    at_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    found: JsonObject = {
        "server": f"{boot}:{parent}:{known[_STARTED]}",
        "at_ns": at_ns,
        "cores": os.cpu_count() or 1,
        "busy_ns": sum(int(busy[place]) for place in _BUSY if place < len(busy)) * tick_ns,
        "server_ns": used * tick_ns,
    }
    return {"host": found}


@dataclass(frozen=True, slots=True)
class Processors:
    """Average number of the host's processors used by the server and by others; `cores` is the number of processors."""

    server: float
    others: float
    cores: int


def processors_between(first: Mapping[str, Any], last: Mapping[str, Any]) -> Processors | None:
    """Return the use of processors between two snapshots' facts; None unless both are of the same server process."""
    old, new = first.get("host"), last.get("host")
    if not old or not new or old["server"] != new["server"] or new["at_ns"] <= old["at_ns"]:
        return None
    span = new["at_ns"] - old["at_ns"]
    server = max(new["server_ns"] - old["server_ns"], 0) / span
    return Processors(server, max((new["busy_ns"] - old["busy_ns"]) / span - server, 0.0), int(new["cores"]))


def processors_of_intervals(before: Interval, after: Interval) -> tuple[Processors, Processors] | None:
    """Return the use of processors in two intervals; None if the server is not on the collector's host."""
    old, new = (processors_between(one.before.facts, one.after.facts) for one in (before, after))
    return None if old is None or new is None else (old, new)


def describe_processors(old: Processors, new: Processors) -> str:
    """Return in words how processors were used in two intervals."""
    return (
        f"other programs used {old.others:.2g} → {new.others:.2g} of the host's {new.cores} processors,"
        f" the server {old.server:.2g} → {new.server:.2g}"
    )


def _of(folder: Path) -> list[str]:
    """Return the fields that follow the name in a process's /proc/PID/stat.

    Raises:
        ValueError: The process does not belong to PostgreSQL.
    """
    name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
    if not name.startswith(("postgres", "postmaster")):
        raise ValueError(name)
    return rest.split()


def _alive(proc: Path, children: list[str]) -> list[list[str]]:
    found = []
    for one in children:
        try:
            found.append(_of(proc / one))
        except (OSError, ValueError):
            continue
    return found


def _started_s(ticks: int) -> float:
    """Return when a process started, in seconds since 1970 by this machine's clock."""
    boot = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.time() - time.clock_gettime(boot) + ticks / os.sysconf("SC_CLK_TCK")
