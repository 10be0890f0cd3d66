"""Sizes of databases and tablespaces: the server looks at every file for them, so that a watch does it sparingly."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from dbdyno.snapshot.engines.postgres.reader import joined
from dbdyno.snapshot.engines.postgres.views import SIZES

if TYPE_CHECKING:
    from dbdyno.snapshot.engines.postgres.reader import Reader
    from dbdyno.snapshot.engines.view import View

SPARING = 1000
"""So many times as long as the last reading took pass before the next."""


class Sizing:
    """Reads the sizes, or gives those of the last reading while that is not long ago."""

    def __init__(self) -> None:
        self._views: list[View] = []
        self._due = 0.0

    def read(self, reader: Reader) -> list[View]:
        """The views of sizes; their `elapsed_ns` is 0 where nothing was read."""
        if self._views and time.monotonic() < self._due:
            return [replace(view, elapsed_ns=0) for view in self._views]
        started = time.monotonic()
        self._views = [joined(source, [reader.read(source)]) for source in SIZES if reader.has(source.name)]
        self._due = time.monotonic() + SPARING * (time.monotonic() - started)
        return list(self._views)
