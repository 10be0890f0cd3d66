"""CPU use by this process and its children, and by all other processes.

The kernel counts how long the CPUs of this process were not idle (/proc/stat, steal included), and how much CPU time
this process and its ended children used. The rest was used by other processes.

Limits: clock ticks of 10 ms; a program that still runs, and daemons that left their parents, count as others. If
/proc/stat cannot be read, there is no result.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

STAT = Path("/proc/stat")
_BUSY = (0, 1, 2, 5, 6, 7)
"""Columns of /proc/stat that count as busy: user (with guest times), nice, system, irq, softirq and steal."""


@dataclass(frozen=True)
class Processors:
    """One reading of the CPUs that this process may use.

    Attributes:
        busy_ns: Time in which these CPUs were busy.
        own_ns: CPU time of this process and its ended children.
        at_ns: Time of the reading, monotonic.
        count: Number of these CPUs.
    """

    busy_ns: int
    own_ns: int
    at_ns: int
    count: int

    @classmethod
    def read(cls, stat: Path = STAT) -> Processors | None:
        """Return a reading now, or None if the kernel does not provide it."""
        allowed = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        own = os.times()
        try:
            lines = [line.split() for line in stat.read_text().splitlines() if line.startswith("cpu")]
            busy = sum(int(line[1 + at]) for line in lines if line[0] in allowed for at in _BUSY)
        except (OSError, ValueError, IndexError):
            return None
        own_ns = round(sum(own[:4]) * 1e9)
        return cls(busy * tick_ns, own_ns, time.monotonic_ns(), len(allowed))

    def others_share(self, later: Processors) -> dict[str, float]:
        """Return the share of these CPUs that other programs used until a later reading, and the number of CPUs."""
        whole = max(1, (later.at_ns - self.at_ns) * self.count)
        others = (later.busy_ns - self.busy_ns) - (later.own_ns - self.own_ns)
        return {"others_share": min(1.0, max(0, others) / whole), "processors": self.count}
