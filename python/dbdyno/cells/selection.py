"""Which of the cells' values are wanted: by name, by object, by database. Applied here, never sent to a cell."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from dbdyno.cells.collect import pattern_of
from dbdyno.cells.collection import Collection
from dbdyno.cells.listing import Reading

OF_DATABASES = ("DB", "PDB", "CG")
"""Metrics whose objects are databases, or parts of one: SALES, SALES.PDB1, SALES.BATCH."""


@dataclass(frozen=True)
class Pick:
    """What is wanted; an empty one wants everything. Patterns match whole names, in any case."""

    mask: re.Pattern[str] | None = None
    exclude: re.Pattern[str] | None = None
    item: re.Pattern[str] | None = None
    databases: tuple[str, ...] = ()

    def wants(self, reading: Reading) -> bool:
        """Whether a value is wanted."""
        if self.mask and not self.mask.fullmatch(reading.name):
            return False
        if self.exclude and self.exclude.fullmatch(reading.name):
            return False
        if self.item and not self.item.fullmatch(reading.object):
            return False
        return not self.databases or self._of_database(reading)

    def wants_name(self, name: str) -> bool:
        """Whether a quantity is wanted by its name; a latency also by that of its time: CD_IO_TM_R_SM is wanted,
        and CD_IO_TM_R_SM_RQ is what it gives."""
        names = (name, name.removesuffix("_RQ"))
        if self.exclude and any(self.exclude.fullmatch(one) for one in names):
            return False
        return self.mask is None or any(self.mask.fullmatch(one) for one in names)

    @property
    def by_object(self) -> Pick:
        """The part that picks objects: what names leave out may still be needed, as the requests of a latency."""
        return replace(self, mask=None, exclude=None)

    def _of_database(self, reading: Reading) -> bool:
        item = reading.object.lower()
        return reading.name.partition("_")[0] in OF_DATABASES and any(
            item == name or item.startswith(f"{name}.") for name in self.databases
        )

    def apply(self, collection: Collection) -> None:
        """Leaves what is not wanted out; what weights latencies stays beside."""
        for column in collection.columns:
            column.listing.readings = [reading for reading in column.readings if self.wants(reading)]


def pick_of(
    mask: str | None = None, exclude: str | None = None, item: str | None = None, databases: str | None = None
) -> Pick:
    """What the options of a command want; raises `CellsError` for what is no regular expression."""
    names = tuple(name.strip().lower() for name in (databases or "").split(",") if name.strip())
    return Pick(pattern_of(mask), pattern_of(exclude, "--exclude"), pattern_of(item, "--object"), names)
