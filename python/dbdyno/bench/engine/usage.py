"""Host resources used by the processes or threads that serve the load's sessions: CPU, I/O calls and storage bytes.

PostgreSQL has a process for each connection, MariaDB a thread, and the kernel of the server's host reports what each of
them used, in the files stat and io of its folder in /proc. The sessions of an arm are recognized by the name that the
load gives them; they are read at both ends of a stretch of load, and the difference is added to the stretch's report,
per arm. If the server is on another host, or behind a pooler, nothing can be read and nothing is reported.

Limits: user and system time are distinguished by clock ticks (usually 10 ms), but their sum is exact; parallel workers,
checkpointers, log writers and InnoDB's read-ahead and write threads serve no session and are not counted; /proc/PID/io
is readable only by root or the same user.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_IO = {"syscr": "read_calls", "syscw": "write_calls", "read_bytes": "read_bytes", "write_bytes": "write_bytes"}
_UTIME, _STIME = 11, 12
"""Indexes of utime and stime in /proc/PID/stat after the process name, which may contain blanks.

Source: proc(5).
"""

Usage = dict[Path, Counter[str]]
"""Resources used since the start of a process or thread, by its /proc folder."""


def read_usage(folders: Iterable[Path]) -> Usage:
    """Read what each process or thread has used since it started; those that are gone are left out."""
    found: Usage = {}
    for folder in folders:
        with contextlib.suppress(OSError, ValueError, IndexError):
            found[folder] = _usage_of(folder)
    return found


@dataclass(frozen=True)
class UsageReading:
    """A first reading of the processes or threads that serve the sessions of all arms.

    Attributes:
        arms: Number of the arm that a process or thread serves, by its /proc folder.
        before: What each process or thread had used at the first reading.
    """

    arms: Mapping[Path, int]
    before: Usage

    def add_to_reports(self, reports: Sequence[Mapping[str, Any]]) -> list[dict[str, object]]:
        """Return the arms of a load's report, each with what its sessions used since the first reading."""
        after = read_usage(self.arms)
        by: dict[int, Counter[str]] = {}
        for folder, arm in self.arms.items():
            if folder in self.before and folder in after:
                own = by.setdefault(arm, Counter())
                for name, value in after[folder].items():
                    own[name] += value - self.before[folder].get(name, 0)
        return [{**report, **by.get(report["arm"], {})} for report in reports]


def _usage_of(folder: Path) -> Counter[str]:
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    found = Counter(user_ns=int(fields[_UTIME]) * tick_ns, system_ns=int(fields[_STIME]) * tick_ns)
    with contextlib.suppress(OSError, ValueError, IndexError):
        found["on_cpu_ns"] = int((folder / "schedstat").read_text().split()[0])
    with contextlib.suppress(OSError):
        for line in (folder / "io").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in _IO:
                found[_IO[name]] = int(value)
    return found
