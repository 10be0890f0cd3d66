"""Time that a process waited for a core although it could have run, as Linux counts it.

    queue = QueueTime(pid)
    before = queue.ns()

A probe subtracts this time from what it measures, because a modelled machine has its own queue in front of its cores.
Linux also counts the time to start an idle core. That time belongs to the measurement, so only the excess over it is
subtracted (`excess_waits`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

USUAL = 0.1
"""Quantile of the waits that is taken as the time to start an idle core."""


class QueueTime:
    """Counter of the time that a process, or the current thread, waited for a core; 0 if it is not counted."""

    def __init__(self, pid: int | None = None, proc: Path = Path("/proc")) -> None:
        path = proc / str(pid) / "schedstat" if pid else proc / f"self/task/{threading.get_native_id()}/schedstat"
        try:
            self._file: int | None = os.open(path, os.O_RDONLY)
        except OSError:
            self._file = None

    def ns(self) -> int:
        """Return the time waited so far [ns]."""
        if self._file is None:
            return 0
        fields = os.pread(self._file, 100, 0).split()
        return int(fields[1]) if len(fields) > 1 else 0

    def close(self) -> None:
        """Close the counter."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def excess_waits(waits_us: Sequence[float]) -> list[float]:
    """Return by how much each wait exceeds the usual one (`USUAL`), at least 0 [us]."""
    if not waits_us:
        return []
    usual = sorted(waits_us)[int(USUAL * (len(waits_us) - 1))]
    return [max(wait - usual, 0.0) for wait in waits_us]
