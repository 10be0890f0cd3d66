"""The manifests of a store as files: their numbers, sizes and times, listed by the core, and added up by blocks."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import accumulate, pairwise
from pathlib import Path

from dbdyno.snapshot.store.manifest import NAME

BLOCK = 2048
"""Number of consecutive snapshot numbers in a block."""
LANDING_S = 60.0
"""Age in seconds up to which a folder without a manifest may be a snapshot that is still being written."""
File = tuple[int, int, int]
"""Number, size [bytes], and time of change [ns] of a manifest."""
Totals = list[int]
"""Number of manifests of a block, and sums of their numbers, sizes, and change times (seconds, nanoseconds)."""


Folders = tuple[int, int]
"""Number of folders of a block, and the sum of their numbers."""


class Manifests:
    """The manifests of a store's snapshots; `totals` has the sums over the manifests of each block that has any.

    Size and time are read for each manifest in the blocks `low` to `high`. For other blocks that are `known`, only the
    folders are listed; `unseen` are the blocks among them that have exactly the known folders.
    """

    def __init__(
        self, folder: Path, low: int = 0, high: int = 1 << 62, known: Mapping[int, Folders] | None = None
    ) -> None:
        from dbdyno import _core

        files, totals, self.unseen, self._newest = _core.numbered_files(
            folder, NAME, BLOCK, low, high, dict(known or {})
        )
        self._folder = folder
        self._files = memoryview(files).cast("q") if files else ()
        self.totals: dict[int, Totals] = {block: rest for block, *rest in totals}
        ends = accumulate((rest[0] for rest in self.totals.values()), initial=0)
        self._places = dict(zip(self.totals, pairwise(ends), strict=True))

    def manifests_of_block(self, block: int) -> list[File]:
        """Return the manifests of a block by number."""
        low, high = self._places[block]
        files = self._files
        return [(files[at], files[at + 1], files[at + 2]) for at in range(3 * low, 3 * high, 3)]

    def is_being_written(self) -> bool:
        """Return True if the newest snapshot is still being written: it has a folder, but no manifest yet."""
        if self._newest < 0 or (self._files and self._files[-3] == self._newest):
            return False
        try:
            return time.time() - (self._folder / f"{self._newest:06d}").stat().st_mtime < LANDING_S
        except OSError:
            return False
