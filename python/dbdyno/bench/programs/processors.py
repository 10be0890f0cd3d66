"""Who used the processors: this process and what it started, or others.

The kernel counts how long the processors of this process were not idle (/proc/stat, steal included), and what this
process and its ended children used. The rest is others'.

Limits: ticks of 10 ms; a program that still runs, and daemons that left their parents, are others. Where /proc/stat
cannot be read nothing is said.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

STAT = Path("/proc/stat")
_BUSY = (0, 1, 2, 5, 6, 7)
"""Columns user, nice, system, irq, softirq, steal; guests are in user."""


@dataclass(frozen=True)
class Processors:
    """A reading: nanoseconds that the processors of this process were busy, that it and its children used, and when."""

    busy_ns: int
    own_ns: int
    at_ns: int
    count: int

    @classmethod
    def now(cls, stat: Path = STAT) -> Processors | None:
        """A reading now; None where the kernel does not say."""
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

    def others_until(self, later: Processors) -> dict[str, float]:
        """What others used until a later reading, as a share of all processors."""
        whole = max(1, (later.at_ns - self.at_ns) * self.count)
        others = (later.busy_ns - self.busy_ns) - (later.own_ns - self.own_ns)
        return {"others_share": min(1.0, max(0, others) / whole), "processors": self.count}
