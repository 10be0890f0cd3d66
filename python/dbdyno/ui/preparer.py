"""Missing sums of an interval, computed in a separate process, so that no page waits for minutes.

A store written by `dbdyno snap watch` has its sums. A store that was copied without them, or filled by many single
snapshots, lacks them; they are computed once, the latest first.

    python -m dbdyno.ui.preparer STORE TARGET FIRST LAST     # ends when its standard input is closed
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from dbdyno.base.errors import SnapshotError
from dbdyno.base.processes import python_command, python_environment
from dbdyno.snapshot.reading.days import cache_days
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.sums.chain import Chain
from dbdyno.snapshot.store.folder import Snapshot, Store

AT_ONCE = 3
"""Maximum number of missing sums of hours and days that a page computes by itself."""
MEMORY = "128MB"


class NotReadyError(SnapshotError):
    """Error for an interval whose sums are still being computed."""


class Preparer:
    """Object that computes missing sums, one interval at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._asked: set[tuple[str, int, int]] = set()

    def check(self, store: Store, chain: Sequence[Snapshot]) -> None:
        """Start computing the sums that an interval lacks, if they are too many for a page to compute by itself.

        Raises:
            NotReadyError: The sums are being computed.
        """
        made, wanted = progress(store, chain)
        if wanted - made <= AT_ONCE:
            return
        name = (f"{store.folder} {chain[0].target}", chain[0].number, chain[-1].number)
        with self._lock:
            works = self._process is not None and self._process.poll() is None
            if not works and name in self._asked:
                return  # it has ended and they are still missing: the page makes them and says what is wrong
            if not works:
                self._asked.add(name)
                self._process = _start(store.folder, chain)
        raise NotReadyError(
            f"{made} of {wanted} sums by hour and day are ready",
            where=chain[0].target,
            next_step="wait: this page shows the interval as soon as all of them are ready",
        )

    def end(self) -> None:
        """End the process."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def progress(store: Store, chain: Sequence[Snapshot]) -> tuple[int, int]:
    """Return how many sums of hours and days an interval has, and how many it should have."""
    if len(chain) <= 2:
        return 0, 0
    sums = Chain(store, [chain[0], chain[-1]], Interval)
    try:
        if not sums.is_cached:
            return 0, 0
        days = sums.whole_days
        summed = {chunk.home for day in days if day.is_cached for chunk in day.chunks}
        made = sum(chunk.is_cached or chunk.home in summed for chunk in sums.chunks)
        return made + sum(day.is_cached for day in days), len(sums.chunks) + len(days)
    finally:
        sums.close()


def _start(folder: Path, chain: Sequence[Snapshot]) -> subprocess.Popen[bytes]:
    given = [str(folder.absolute()), chain[0].target, str(chain[0].number), str(chain[-1].number)]
    return subprocess.Popen(
        [*python_command("dbdyno.ui.preparer"), *given],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=python_environment(),
    )


def prepare(store: Store, first: Snapshot, last: Snapshot) -> None:
    """Compute the missing sums between two snapshots, the latest first."""
    sums = Chain(store, [first, last], Interval)
    try:
        for chunk in reversed(sums.chunks if sums.is_cached else []):
            if not chunk.is_cached:
                _ = chunk.model
                del chunk.model
        for _ in cache_days(sums):
            pass
    finally:
        sums.close()


def main() -> None:
    """Compute the sums of an interval; the process ends with the server that started it."""
    from dbdyno.evidence.memory import limit_memory

    folder, _, first, last = sys.argv[1:]
    threading.Thread(target=_end_with_server, daemon=True).start()
    os.nice(10)
    limit_memory(MEMORY)
    store = Store(Path(folder))
    prepare(store, store.open(int(first)), store.open(int(last)))


def _end_with_server() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
