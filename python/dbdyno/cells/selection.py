"""Selection of the cells' values by metric, object or database; applied here, never sent to a cell."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from dbdyno.cells.collect import pattern_of
from dbdyno.cells.collection import Collection
from dbdyno.cells.listing import Reading

OF_DATABASES = ("DB", "PDB", "CG")
"""Metric families whose objects are databases, or parts of one: SALES, SALES.PDB1, SALES.BATCH."""


@dataclass(frozen=True)
class Selection:
    """Selection of values; an empty one selects everything. Patterns match whole names, ignoring case."""

    mask: re.Pattern[str] | None = None
    exclude: re.Pattern[str] | None = None
    item: re.Pattern[str] | None = None
    databases: tuple[str, ...] = ()

    def wants(self, reading: Reading) -> bool:
        """Return True if the reading is selected."""
        if self.mask and not self.mask.fullmatch(reading.name):
            return False
        if self.exclude and self.exclude.fullmatch(reading.name):
            return False
        if self.item and not self.item.fullmatch(reading.object):
            return False
        return not self.databases or self._of_database(reading)

    def wants_name(self, name: str) -> bool:
        """Return True if the name of a metric is selected; for a latency, the name of its time counter also counts.

        For example CD_IO_TM_R_SM selects CD_IO_TM_R_SM_RQ.
        """
        names = (name, name.removesuffix("_RQ"))
        if self.exclude and any(self.exclude.fullmatch(one) for one in names):
            return False
        return self.mask is None or any(self.mask.fullmatch(one) for one in names)

    @property
    def by_object(self) -> Selection:
        """Return the selection without its name patterns; a latency also needs requests, which they may not match."""
        return replace(self, mask=None, exclude=None)

    def _of_database(self, reading: Reading) -> bool:
        item = reading.object.lower()
        return reading.name.partition("_")[0] in OF_DATABASES and any(
            item == name or item.startswith(f"{name}.") for name in self.databases
        )

    def apply(self, collection: Collection) -> None:
        """Remove readings that are not selected; each column's `rates`, which weight latencies, are unchanged."""
        for column in collection.columns:
            column.listing.readings = [reading for reading in column.readings if self.wants(reading)]


def selection_of(
    mask: str | None = None, exclude: str | None = None, item: str | None = None, databases: str | None = None
) -> Selection:
    """Return the selection that a command's options ask for.

    Raises:
        CellsError: An option is not a regular expression.
    """
    names = tuple(name.strip().lower() for name in (databases or "").split(",") if name.strip())
    return Selection(pattern_of(mask), pattern_of(exclude, "--exclude"), pattern_of(item, "--object"), names)
