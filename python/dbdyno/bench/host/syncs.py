"""Writes to a database's log, each timed, and made durable by each of PostgreSQL's `wal_sync_method` values.

The log is a file of the size of a WAL segment, filled beforehand. A flush writes whole pages, beginning with the page
in which the previous flush ended. Its size is drawn at random, from that of a small commit to 64 KB. The CPU time of
each flush is measured as well: the rest of its time is spent on the device.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from dbdyno.base.errors import DeviceError
from dbdyno.bench.host.machine import file_system
from dbdyno.bench.host.queue_time import QueueTime, excess_waits

PAGE_BYTES = 8192
SEGMENT_BYTES = 16 << 20
LEAST_BYTES, MOST_BYTES = 512, 64 << 10
"""Smallest and largest amount of log in a flush [bytes]."""
FLAGS = {"fdatasync": 0, "open_datasync": getattr(os, "O_DSYNC", 0), "fsync": 0, "open_sync": getattr(os, "O_SYNC", 0)}
"""Flags with which PostgreSQL opens the log, for each sync method; the first method is its default on Linux."""


@dataclass
class Syncs:
    """Flushes made with one sync method, in order.

    Attributes:
        started_ns: UNIX time at which each flush started.
        elapsed_us: Time of each flush.
        cpu_us: CPU time of each flush.
        queue_us: Time that each flush waited for a core.
        kb: Size of the pages that each flush wrote [KB].
    """

    started_ns: list[int] = field(default_factory=list)
    elapsed_us: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)
    queue_us: list[float] = field(default_factory=list)
    kb: list[float] = field(default_factory=list)

    def device_us(self) -> list[float]:
        """Return the part of each flush that is neither CPU time nor a wait for a busy core [us]."""
        queued = excess_waits(self.queue_us)
        return [a - b - c for a, b, c in zip(self.elapsed_us, self.cpu_us, queued, strict=True)]


class LogFile:
    """A file like a segment of the log; it has no name and disappears when it is closed.

    Raises:
        DeviceError: The folder cannot be written, or it is in memory, where a sync costs nothing.
    """

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.syncs = {method: Syncs() for method in FLAGS}
        self._dice = random.Random(seed)
        self._at = 0
        self._page = os.urandom(MOST_BYTES + 2 * PAGE_BYTES)
        found = file_system(folder)
        if found is not None and found.in_memory:
            raise DeviceError(
                f"is in memory ({found.kind}), where a sync takes no time",
                where=str(folder),
                next_step="name a folder on the disk that will hold the database's log",
            )
        self._files: dict[str, int] = {}
        self._queue = QueueTime()
        try:
            with tempfile.NamedTemporaryFile(dir=folder, prefix="dbdyno-log-", buffering=0) as file:
                file.write(os.urandom(1 << 20) * (SEGMENT_BYTES >> 20))
                os.fsync(file.fileno())
                for method, flag in FLAGS.items():
                    self._files[method] = os.open(file.name, os.O_RDWR | flag)
        except OSError as error:
            self.close()
            raise DeviceError(
                f"cannot be written: {error.strerror}",
                where=str(folder),
                next_step="name a folder that you may write to",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, which removes it."""
        for number in self._files.values():
            os.close(number)
        self._files.clear()
        self._queue.close()

    def flush_for(self, method: str, length_ns: int) -> None:
        """Flush repeatedly with one sync method for this time [ns], at least once."""
        end_ns = time.perf_counter_ns() + length_ns
        self._flush(method)
        while time.perf_counter_ns() < end_ns:
            self._flush(method)

    def _flush(self, method: str) -> None:
        number, own = self._files[method], self.syncs[method]
        size = round(LEAST_BYTES * (MOST_BYTES / LEAST_BYTES) ** self._dice.random())
        if self._at + size + PAGE_BYTES > SEGMENT_BYTES:
            self._at = 0
        first, last = self._at // PAGE_BYTES, -(-(self._at + size) // PAGE_BYTES)
        self._at += size
        data = memoryview(self._page)[: (last - first) * PAGE_BYTES]
        queue_ns = self._queue.ns()
        started_ns, cpu_ns, begin_ns = time.time_ns(), time.thread_time_ns(), time.perf_counter_ns()
        os.pwrite(number, data, first * PAGE_BYTES)
        if method == "fdatasync":
            os.fdatasync(number)
        elif method == "fsync":
            os.fsync(number)
        end_ns = time.perf_counter_ns()
        own.started_ns.append(started_ns)
        own.elapsed_us.append((end_ns - begin_ns) / 1e3)
        own.cpu_us.append((time.thread_time_ns() - cpu_ns) / 1e3)
        own.queue_us.append((self._queue.ns() - queue_ns) / 1e3)
        own.kb.append((last - first) * PAGE_BYTES / 1024)
