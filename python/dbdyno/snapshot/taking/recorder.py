"""Keeps what a live screen saw as snapshots of a store: one at its beginning, one a minute, one at its end."""

from __future__ import annotations

import time
from pathlib import Path

from dbdyno.base.errors import Error
from dbdyno.snapshot.engines.registry import engine_of
from dbdyno.snapshot.engines.view import Options, View
from dbdyno.snapshot.store.folder import Store
from dbdyno.snapshot.taking.take import added, open_collector, take

EVERY_S = 60.0
Sampled = tuple[list[View], int]


class Recorder:
    """Takes a snapshot now. Raises `SnapshotError` where that is not possible; later ones that fail are told, and
    their samples are in the next one."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self._engine = engine_of(dsn)
        self._store = Store(folder)
        self._collector = open_collector(dsn, Options())
        self._kept: Sampled | None = None
        take(self._collector, self._store, engine_name=self._engine, note="snap top")
        self._due = time.monotonic() + EVERY_S

    def add(self, sampled: Sampled) -> list[str]:
        """Samples of one refresh; what could not be kept, and why."""
        self._kept = added(self._kept, sampled)
        return self._take() if time.monotonic() >= self._due else []

    def end(self, sampled: Sampled) -> None:
        """The last snapshot. A server that is gone gives none."""
        self.add(sampled)
        self._take()
        self._collector.__exit__()

    def _take(self) -> list[str]:
        self._due = time.monotonic() + EVERY_S
        try:
            take(self._collector, self._store, engine_name=self._engine, note="snap top", sampled=self._kept)
        except Error as error:
            return [f"not recorded: {error.message}"]
        self._kept = None
        return []
