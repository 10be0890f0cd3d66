"""Which answers are of one and the same cell: by what a cell calls itself, not by how it was reached.

A cell may be named twice: by name and by address, over either of its two networks, in two group files. Its
values would then be summed twice. Every cell says its own name, in XML as the context of its answer and in text
as the ending of its disks' names; that name is used in place of the address wherever values are shown or kept.

Two cells of different racks may bear one name: they are told apart by when their services began, or by values
that differ for the same time of collection, and both then show their address.
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
class Names:
    """What the cells of a fleet call themselves, once each has said so: a cell that does not answer later keeps
    its name. `addresses` are all ways by which a cell was reached, by its name."""

    own: dict[Host, str] = field(default_factory=dict)

    @property
    def addresses(self) -> dict[str, list[str]]:
        """The addresses of each cell, by its name; those of which nothing was heard are not in it."""
        found: dict[str, list[str]] = {}
        for host, name in self.own.items():
            found.setdefault(name, []).append(shown(host))
        return found

    @property
    def twice(self) -> list[str]:
        """A sentence for each cell that was reached in several ways."""
        return [
            f"{name} was reached as {' and as '.join(ways)}: it is one cell, and counts once"
            for name, ways in self.addresses.items()
            if len(ways) > 1
        ]

    def of(self, host: Host) -> str:
        """What a host is called: as the cell calls itself, else as it was named."""
        return self.own.get(host, host.name)

    def called(self, hosts: Iterable[Host]) -> list[str]:
        """The cells behind these hosts, each once."""
        return list(dict.fromkeys(self.of(host) for host in hosts))

    def take(self, collection: Collection) -> None:
        """Names the columns of a collection by what the cells call themselves; of one cell that was reached
        several times one column stays."""
        self._learn(collection.columns)
        kept: dict[str, Column] = {}
        for column in collection.columns:
            name = self.of(column.host)
            if name not in kept or (kept[name].problem and not column.problem):
                kept[name] = column
        collection.columns = [renamed(column, name) for name, column in kept.items()]
        collection.twice = self.twice

    def learn(self, facts: Mapping[Host, Mapping[str, str]]) -> None:
        """Takes names from what the cells are (`configuration`): one name and one id are one cell."""
        ids: dict[str, set[str]] = {}
        for own in facts.values():
            ids.setdefault(own.get("cell.name", ""), set()).add(own.get("cell.id", ""))
        for host, own in facts.items():
            if name := own.get("cell.name"):
                self.own[host] = name if len(ids[name]) == 1 else f"{name} ({shown(host)})"

    def _learn(self, columns: Sequence[Column]) -> None:
        alike: dict[str, list[Column]] = {}
        for column in columns:
            if name := own_name(column):
                alike.setdefault(name, []).append(column)
        for name, found in alike.items():
            one = all(_same(found[0], other) for other in found[1:])
            for column in found:
                self.own.setdefault(column.host, name if one else f"{name} ({shown(column.host)})")


def renamed_answers(answers: Iterable[Answer], own: Mapping[Host, str]) -> None:
    """Names each answer by what its cell calls itself. Where two addresses say one name, it may be one cell or two
    of different racks: then the address stands beside it. A cell that did not say keeps its address."""
    by_name = Counter(own.values())
    for answer in answers:
        if name := own.get(answer.host):
            kept = name if by_name[name] == 1 else f"{name} ({shown(answer.host)})"
            answer.host = replace(answer.host, name=kept)


def known_as(manifest: Manifest) -> dict[str, str]:
    """What the cells of a recording call themselves, by the name under which it holds them; '' for one that is
    there already under another. Recordings of earlier versions hold cells by their addresses."""
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


def shown(host: Host) -> str:
    """A host as it was named: address, and port where one was given."""
    return f"{host.address}:{host.port}" if host.port else host.address


def own_name(column: Column) -> str:
    """What the cell calls itself in its answer; '' where it does not say."""
    return column.listing.own_name or next(iter(own_names(column.everything).values()), "")


def renamed(column: Column, name: str) -> Column:
    """The same column under another name."""
    if column.host.name == name:
        return column
    listing = column.listing
    listing.readings = [reading._replace(cell=name) for reading in listing.readings]
    listing.started_ns = dict.fromkeys([name], column.started_ns) if column.started_ns is not None else {}
    rates = [reading._replace(cell=name) for reading in column.rates]
    return replace(column, host=replace(column.host, name=name), rates=rates)


def _same(one: Column, other: Column) -> bool:
    """Whether nothing speaks against two answers being of one cell."""
    if None not in (one.started_ns, other.started_ns) and one.started_ns != other.started_ns:
        return False
    values = {(r.name, r.object, r.at_ns): r.value for r in one.everything}
    dated = (reading for reading in other.everything if reading.at_ns is not None)
    return all(values.get((r.name, r.object, r.at_ns), r.value) == r.value for r in dated)
