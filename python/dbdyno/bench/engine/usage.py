"""What serves the load's sessions used of this host: CPU, calls, bytes from the storage, by arm.

PostgreSQL has a process for each connection, MariaDB a thread, and on this host the kernel says what each used (its
folder in /proc, with stat and io). The sessions of an arm are known by the name that the load gives them; they are read
at both ends of a stretch of load, and the difference is added to the stretch's report, per arm. Where the server is on
another host, or behind a pooler, there is nothing to read, and nothing is said.

Limits: user and system mode are told apart by clock ticks (usually 10 ms), the sum of both is exact; parallel workers,
checkpointers, log writers and InnoDB's threads for reads ahead and writes serve no session and are not counted;
/proc/PID/io is read only as root or as the same user.
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
"""Places in /proc/PID/stat behind the name, which may hold blanks; proc(5)."""

Used = dict[Path, Counter[str]]
"""By folder of a process or a thread: what it used since it started."""


def used(folders: Iterable[Path]) -> Used:
    """What each process or thread used up to now; one that is gone is left out."""
    found: Used = {}
    for folder in folders:
        with contextlib.suppress(OSError, ValueError, IndexError):
            found[folder] = _used(folder)
    return found


@dataclass(frozen=True)
class Bill:
    """A first reading of what serves the sessions of all arms, and what was used since then."""

    arms: Mapping[Path, int]
    before: Used

    def added_to(self, reports: Sequence[Mapping[str, Any]]) -> list[dict[str, object]]:
        """The arms of a load's report, each with what its sessions used since the first reading."""
        after = used(self.arms)
        by: dict[int, Counter[str]] = {}
        for folder, arm in self.arms.items():
            if folder in self.before and folder in after:
                own = by.setdefault(arm, Counter())
                for name, value in after[folder].items():
                    own[name] += value - self.before[folder].get(name, 0)
        return [{**report, **by.get(report["arm"], {})} for report in reports]


def _used(folder: Path) -> Counter[str]:
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
