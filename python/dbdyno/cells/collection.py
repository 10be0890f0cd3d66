"""One collection from all cells: a column of readings for each."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbdyno.cells.hosts import Host
from dbdyno.cells.listing import Listing, Reading


@dataclass
class Column:
    """One cell's readings. `problem` says what went wrong, if only a part of it is here; `rates`
    are its requests per second, also those that the mask left out: latencies need them; `everything` is all that
    it said, whatever the mask."""

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
        """What the cell said of its metrics."""
        return self.listing.readings

    @property
    def started_ns(self) -> int | None:
        """When the cell's service began, where it says so."""
        return next(iter(self.listing.started_ns.values()), None)


@dataclass
class Collection:
    """One collection from all cells, a column each, in the order of the hosts. `twice` are sentences on cells
    that were reached in several ways."""

    columns: list[Column]
    descriptions: dict[str, str] = field(default_factory=dict)
    alerts: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    twice: list[str] = field(default_factory=list)

    @property
    def readings(self) -> list[Reading]:
        """All readings; `cell` is the name of the column."""
        return [reading for column in self.columns for reading in column.readings]

    @property
    def rates(self) -> list[Reading]:
        """The requests per second of all cells, also what the mask left out."""
        return [reading for column in self.columns for reading in column.rates]

    @property
    def failed(self) -> list[Column]:
        """The columns of which something is missing."""
        return [column for column in self.columns if column.problem]
