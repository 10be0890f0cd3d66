"""Kinds of evidence about a Linux host; counters count from boot, and None means "not present", never zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Device:
    """A block device: its queue and its counters (`stat`); times in milliseconds, sizes in bytes."""

    name: str
    scheduler: str
    nr_requests: int | None
    queue_depth: int | None
    read_ahead_kb: int | None
    write_cache: str
    is_rotational: bool | None
    reads: int
    read_bytes: int
    writes: int
    written_bytes: int
    busy_ms: int
    weighted_ms: int

    @property
    def limit(self) -> int | None:
        """Return the maximum number of outstanding requests: the smaller of nr_requests and queue_depth, or None."""
        known = [one for one in (self.nr_requests, self.queue_depth) if one is not None]
        return min(known, default=None)

    @property
    def under_way(self) -> float | None:
        """Return the mean number of outstanding or waiting requests while the device was busy, or None."""
        return self.weighted_ms / self.busy_ms if self.busy_ms else None


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system on a block device."""

    device: str
    folder: str
    kind: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """Kernel settings by their file or `file:name`, and seconds since boot."""

    values: Mapping[str, int]
    words: Mapping[str, str]
    nodes: int
    uptime_s: float | None
