"""Sizes of databases and tablespaces, read rarely by a watch because the server examines every file for them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from dbdyno.snapshot.engines.postgres.reader import join_parts
from dbdyno.snapshot.engines.postgres.views import SIZES

if TYPE_CHECKING:
    from dbdyno.snapshot.engines.postgres.reader import Reader
    from dbdyno.snapshot.engines.view import View

PAUSE_FACTOR = 1000
"""Pause before the next reading, as a multiple of the last reading's duration."""


class SizesCache:
    """Reader of the sizes that returns the sizes of the last reading while it is recent."""

    def __init__(self) -> None:
        self._views: list[View] = []
        self._due = 0.0

    def read(self, reader: Reader) -> list[View]:
        """Return the views of sizes; `elapsed_ns` is 0 if nothing was read."""
        if self._views and time.monotonic() < self._due:
            return [replace(view, elapsed_ns=0) for view in self._views]
        started = time.monotonic()
        self._views = [join_parts(source, [reader.read(source)]) for source in SIZES if reader.has(source.name)]
        self._due = time.monotonic() + PAUSE_FACTOR * (time.monotonic() - started)
        return list(self._views)
