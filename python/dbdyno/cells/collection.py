"""One collection from all cells, with a column of readings for each cell."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbdyno.cells.hosts import Host
from dbdyno.cells.listing import Listing, Reading


@dataclass
class Column:
    """Readings of one cell.

    `problem` says what went wrong if something is missing; `rates` are its requests per second, including those left
    out by the mask, because latencies need them; `everything` is all that it returned, regardless of the mask.
    """

    host: Host
    listing: Listing
    asked_ns: int
    seconds: float
    problem: str | None = None
    next_step: str | None = None
    rates: list[Reading] = field(default_factory=list)
    everything: list[Reading] = field(default_factory=list)

    @property
    def readings(self) -> list[Reading]:
        """Return the cell's readings."""
        return self.listing.readings

    @property
    def started_ns(self) -> int | None:
        """Return when the cell's service started, in ns since 1970, or None if the cell did not report it."""
        return next(iter(self.listing.started_ns.values()), None)


@dataclass
class Collection:
    """One collection from all cells, one column each, in the order of the hosts.

    `twice` holds sentences about cells that were reached under several addresses.
    """

    columns: list[Column]
    descriptions: dict[str, str] = field(default_factory=dict)
    alerts: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    twice: list[str] = field(default_factory=list)

    @property
    def readings(self) -> list[Reading]:
        """Return all readings; their `cell` is the name of the column."""
        return [reading for column in self.columns for reading in column.readings]

    @property
    def rates(self) -> list[Reading]:
        """Return the requests per second of all cells, including those left out by the mask."""
        return [reading for column in self.columns for reading in column.rates]

    @property
    def failed(self) -> list[Column]:
        """Return the columns with a problem."""
        return [column for column in self.columns if column.problem]
