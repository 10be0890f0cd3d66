"""Configuration of a cell: its software, flash, disks and IORM plan, so that only comparable recordings are compared.

Only stable facts are recorded, not uptime or temperature. Disks are counted by kind: `12 HardDisk 600G normal`. A cell
that does not answer, or whose CellCLI does not know an object type, has fewer facts; missing facts are not guessed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from dbdyno.cells.documents import read_any
from dbdyno.cells.hosts import Host
from dbdyno.cells.ssh import Access, Fleet

Facts = dict[str, dict[str, str]]
"""Facts of each cell by the cell's name; each fact is a name (`cell.releaseVersion`) and a text."""
FactsOf = dict[Host, dict[str, str]]

SINGLE = {
    "cell": ("name", "id", "makeModel", "releaseVersion", "cellVersion", "flashCacheMode", "cpuCount", "status"),
    "flashcache": ("size", "effectiveCacheSize", "degradedCelldisks", "status"),
    "flashlog": ("size", "effectiveSize", "degradedCelldisks", "status"),
    "iormplan": ("objective", "catPlan", "dbPlan", "status"),
}
COUNTED = {
    "celldisk": ("diskType", "size", "status"),
    "griddisk": ("diskType", "size", "cachingPolicy", "asmModeStatus", "status"),
}


def query_configuration(hosts: Sequence[Host], access: Access) -> FactsOf:
    """Return the facts of every cell that answers."""
    return asyncio.run(read_configuration(hosts, access))


async def read_configuration(hosts: Sequence[Host], access: Access) -> FactsOf:
    """Return the facts of every cell that answers; the asynchronous form of `query_configuration`."""
    hosts = list(hosts)
    found: FactsOf = {}
    async with Fleet(hosts, access) as fleet:
        for kind in (*SINGLE, *COUNTED):
            for answer in await fleet.run(f"cellcli -e list {kind} detail"):
                if answer.problem is None:
                    details = read_any(answer.output).details
                    found.setdefault(answer.host, {}).update(facts_of(kind, details))
                else:  # it would cost its timeout again
                    hosts.remove(answer.host)
    return found


_TELLING = (
    ("iormplan", ("dbPlan", "catPlan", "objective")),
    ("cell", ("makeModel", "releaseVersion", "cellVersion", "flashCacheMode")),
    ("griddisk", ("asmModeStatus", "cachingPolicy", "asmDiskGroupName", "availableTo")),
    ("celldisk", ("diskType",)),
    ("flashcache", ("effectiveCacheSize",)),
    ("flashlog", ("effectiveSize",)),
)
"""Attributes that identify a kind of object, with that kind, in the order in which they are checked."""


def kind_of(details: Mapping[str, str]) -> str:
    """Return the kind of object in a DETAIL listing, by its attributes; empty for kinds without facts."""
    return next((kind for kind, names in _TELLING if any(name in details for name in names)), "")


def facts_in(details: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the facts in DETAIL listings of one cell, of any kinds."""
    kinds: dict[str, list[Mapping[str, str]]] = {}
    for entry in details:
        kinds.setdefault(kind_of(entry), []).append(entry)
    return {name: text for kind, own in kinds.items() if kind for name, text in facts_of(kind, own).items()}


def facts_of(kind: str, details: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the facts in a DETAIL listing of one kind of object."""
    if kind in SINGLE:
        wanted = SINGLE[kind]
        first = details[0] if details else {}
        return {f"{kind}.{name}": first[name] for name in wanted if first.get(name, "").strip()}
    kinds = Counter(
        " ".join(text for name in COUNTED[kind] if (text := entry.get(name, "").strip())) for entry in details
    )
    told = [f"{count} {text}".strip() for text, count in sorted(kinds.items())]
    return {f"{kind}s": ", ".join(told)} if told else {}
