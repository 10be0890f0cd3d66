"""What the server's processes used that serve the load's sessions: CPU, calls, bytes from the storage, by arm.

PostgreSQL has a process for each connection, and on this host the kernel says what each used (/proc/PID/stat and
/proc/PID/io). The sessions of an arm are known by their application_name; they are read at both ends of a stretch of
load, and the difference is added to the stretch's report, per arm. Where the server is on another host, or behind a
pooler, there is nothing to read, and nothing is said.

Limits: user and system mode are told apart by clock ticks (usually 10 ms), the sum of both is exact; parallel workers,
the checkpointer and the WAL writer are processes of their own and not counted; /proc/PID/io is read only as root or as
the same user.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

_IO = {"syscr": "read_calls", "syscw": "write_calls", "read_bytes": "read_bytes", "write_bytes": "write_bytes"}
_UTIME, _STIME = 11, 12
"""Places in /proc/PID/stat behind the name, which may hold blanks; proc(5)."""
_PIDS = "select pid, application_name from pg_stat_activity where application_name = any(%s)"

Used = dict[int, Counter[str]]
"""By process: what it used since it started."""


def sessions_of(conn: Connection, names: Mapping[str, int]) -> dict[int, int]:
    """The processes that serve sessions of these names, with their arms."""
    rows = conn.execute(_PIDS, [list(names)]).fetchall()
    return {pid: names[name] for pid, name in rows}


def used(pids: list[int], proc: Path = Path("/proc")) -> Used:
    """What each process used up to now; one that is gone is left out."""
    found: Used = {}
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            found[pid] = _used(proc / str(pid))
    return found


@dataclass(frozen=True)
class Bill:
    """A first reading of the sessions of all arms, and what they used since then."""

    arms: dict[int, int]
    before: Used
    proc: Path = Path("/proc")

    def added_to(self, reports: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The arms of a load's report, each with what its processes used since the first reading."""
        after = used(list(self.arms), self.proc)
        by: dict[int, Counter[str]] = {}
        for pid, arm in self.arms.items():
            if pid in self.before and pid in after:
                own = by.setdefault(arm, Counter())
                for name, value in after[pid].items():
                    own[name] += value - self.before[pid].get(name, 0)
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
