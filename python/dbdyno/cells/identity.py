"""Recognition of answers from the same cell, by the name that it reports and not by how it was reached.

A cell may be listed twice: by name and by address, over either of its two networks, in two group files. Its values
would then be summed twice. Every cell reports its own name: in XML as the context of its answer, in text as the ending
of its disks' names. That name replaces the address wherever values are shown or stored.

Two cells of different racks may have the same name: they are distinguished by the start times of their services, or by
values that differ for the same collection time; both are then shown with their addresses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dbdyno.cells.aggregate import own_names
from dbdyno.cells.collection import Collection, Column
from dbdyno.cells.hosts import Host
from dbdyno.evidence.manifest import Manifest

if TYPE_CHECKING:
    from dbdyno.cells.ssh import Answer


@dataclass
class CellNames:
    """Names that the cells of a fleet have reported so far; a cell that later does not answer keeps its name."""

    own: dict[Host, str] = field(default_factory=dict)

    @property
    def addresses(self) -> dict[str, list[str]]:
        """Return, by cell name, all addresses by which the cell was reached; cells that never answered are left out."""
        found: dict[str, list[str]] = {}
        for host, name in self.own.items():
            found.setdefault(name, []).append(address_of(host))
        return found

    @property
    def duplicate_sentences(self) -> list[str]:
        """Return a sentence for each cell that was reached under several addresses."""
        return [
            f"{name} was reached as {' and as '.join(ways)}: it is one cell, and counts once"
            for name, ways in self.addresses.items()
            if len(ways) > 1
        ]

    def name_of(self, host: Host) -> str:
        """Return the name that the cell reported, else the name by which it was listed."""
        return self.own.get(host, host.name)

    def names_of(self, hosts: Iterable[Host]) -> list[str]:
        """Return the names of the cells behind these hosts, each once."""
        return list(dict.fromkeys(self.name_of(host) for host in hosts))

    def apply_names(self, collection: Collection) -> None:
        """Rename the columns of a collection to the cells' own names, and keep one column per cell."""
        self._learn(collection.columns)
        kept: dict[str, Column] = {}
        for column in collection.columns:
            name = self.name_of(column.host)
            if name not in kept or (kept[name].problem and not column.problem):
                kept[name] = column
        collection.columns = [rename_column(column, name) for name, column in kept.items()]
        collection.twice = self.duplicate_sentences

    def learn(self, facts: Mapping[Host, Mapping[str, str]]) -> None:
        """Learn names from the cells' configurations: two answers with the same name and id are from the same cell."""
        ids: dict[str, set[str]] = {}
        for own in facts.values():
            ids.setdefault(own.get("cell.name", ""), set()).add(own.get("cell.id", ""))
        for host, own in facts.items():
            if name := own.get("cell.name"):
                self.own[host] = name if len(ids[name]) == 1 else f"{name} ({address_of(host)})"

    def _learn(self, columns: Sequence[Column]) -> None:
        alike: dict[str, list[Column]] = {}
        for column in columns:
            if name := own_name(column):
                alike.setdefault(name, []).append(column)
        for name, found in alike.items():
            one = all(_may_be_same(found[0], other) for other in found[1:])
            for column in found:
                self.own.setdefault(column.host, name if one else f"{name} ({address_of(column.host)})")


def renamed_answers(answers: Iterable[Answer], own: Mapping[Host, str]) -> None:
    """Rename each answer to the name its cell reports.

    If two addresses report the same name, they may belong to one cell or to cells of different racks: the address is
    then added. A cell that did not report a name keeps its address.
    """
    by_name = Counter(own.values())
    for answer in answers:
        if name := own.get(answer.host):
            kept = name if by_name[name] == 1 else f"{name} ({address_of(answer.host)})"
            answer.host = replace(answer.host, name=kept)


def recorded_names(manifest: Manifest) -> dict[str, str]:
    """Return the names that cells report, by their names in the recording, for cells whose two names differ.

    The value is empty for a column whose cell is also in the recording under another name. Recordings of earlier
    versions name cells by their addresses.
    """
    first = (manifest.configuration or {}).get("first") or {}
    ids: dict[str, set[str]] = {}
    for own in first.values():
        ids.setdefault(own.get("cell.name", ""), set()).add(own.get("cell.id", ""))
    found: dict[str, str] = {}
    for column, own in first.items():
        name = own.get("cell.name", "")
        if name and len(ids[name]) == 1 and column != name:
            found[column] = "" if name in first or name in found.values() else name
    return found


def address_of(host: Host) -> str:
    """Return a host's address, with its port if one was given."""
    return f"{host.address}:{host.port}" if host.port else host.address


def own_name(column: Column) -> str:
    """Return the name that the cell reports in its answer; empty if there is none."""
    return column.listing.own_name or next(iter(own_names(column.everything).values()), "")


def rename_column(column: Column, name: str) -> Column:
    """Return the column under another name."""
    if column.host.name == name:
        return column
    listing = column.listing
    listing.readings = [reading._replace(cell=name) for reading in listing.readings]
    listing.started_ns = dict.fromkeys([name], column.started_ns) if column.started_ns is not None else {}
    rates = [reading._replace(cell=name) for reading in column.rates]
    return replace(column, host=replace(column.host, name=name), rates=rates)


def _may_be_same(first: Column, second: Column) -> bool:
    """Return True if nothing contradicts that two answers come from the same cell."""
    if None not in (first.started_ns, second.started_ns) and first.started_ns != second.started_ns:
        return False
    values = {(r.name, r.object, r.at_ns): r.value for r in first.everything}
    dated = (reading for reading in second.everything if reading.at_ns is not None)
    return all(values.get((r.name, r.object, r.at_ns), r.value) == r.value for r in dated)
