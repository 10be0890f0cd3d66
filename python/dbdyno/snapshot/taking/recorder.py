"""Recording of a live screen's samples as snapshots: one at the beginning, one per minute, one at the end."""

from __future__ import annotations

import time
from pathlib import Path

from dbdyno.base.errors import Error
from dbdyno.snapshot.engines.registry import engine_of
from dbdyno.snapshot.engines.view import Options, View
from dbdyno.snapshot.sessions.samples import Source
from dbdyno.snapshot.store.folder import Store
from dbdyno.snapshot.taking.take import merge_samples, open_collector, take

EVERY_S = 60.0
Sampled = tuple[list[View], int]


class Recorder:
    """Recorder of a live screen, which takes a snapshot when it is created.

    If a later snapshot fails, that is reported, and its samples are in the next one.

    Raises:
        SnapshotError: The first snapshot cannot be taken.
    """

    def __init__(self, dsn: str, folder: Path) -> None:
        self._engine = engine_of(dsn)
        self._store = Store(folder)
        self._collector = open_collector(dsn, Options())
        self._kept: Sampled | None = None
        self._source: Source | None = None
        take(self._collector, self._store, engine_name=self._engine, note="snap top")
        self._due = time.monotonic() + EVERY_S

    def add(self, sampled: Sampled, source: Source | None) -> list[str]:
        """Add the samples of one refresh, and return sentences on what could not be recorded, and why."""
        self._source = source
        self._kept = merge_samples(self._kept, sampled)
        return self._take() if time.monotonic() >= self._due else []

    def end(self, sampled: Sampled, source: Source | None) -> None:
        """Take the last snapshot and close; there is none if the server is gone."""
        self.add(sampled, source)
        self._take()
        self._collector.__exit__()

    def _take(self) -> list[str]:
        self._due = time.monotonic() + EVERY_S
        try:
            take(
                self._collector,
                self._store,
                engine_name=self._engine,
                note="snap top",
                sampled=self._kept,
                source=self._source,
            )
        except Error as error:
            return [f"not recorded: {error.message}"]
        self._kept = None
        return []
