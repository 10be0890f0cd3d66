"""One modelled cell: takes a CellCLI command, gives what CellCLI would print.

LIST reads what the cell collected last and what the model holds now; CREATE, DROP and ALTER are in
`changes`. Created grid disks are kept here: nothing does I/O on them, and their counters are zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dbdyno.cells.catalogue import metric
from dbdyno.errors import ModelError
from dbdyno.rig import answer
from dbdyno.rig.language import Change, Query, RefusedError, parsed
from dbdyno.rig.rack import Rack, Row, Sample
from dbdyno.rig.things import (
    ATTRIBUTES,
    Thing,
    columns,
    measured,
    moment,
    selected,
    size,
    whole,
    word,
)

TYPES = {"counter": "Cumulative", "gauge": "Instantaneous", "rate": "Rate"}
MODES = {"write-through": "WriteThrough", "write-back": "WriteBack", "none": "WriteThrough"}
NO_OBJECT = 4_294_967_295
"""The number under which cells keep what they cannot tell the segment of."""


@dataclass(frozen=True)
class Extra:
    """A grid disk that was created by a command."""

    name: str
    cell_disk: str
    flash: bool
    size_bytes: int
    offset_bytes: int


@dataclass
class IormPlan:
    """Resource management as it was given; the part that the model knows is in force there."""

    objective: str = "basic"
    database: list[str] = field(default_factory=list)
    category: str = ""
    active: bool = True


class Cell:
    """A cell of a rack, by its number."""

    def __init__(self, rack: Rack, number: int) -> None:
        self.rack = rack
        self.number = number
        self.name = rack.names[number]
        facts = rack.facts["cells"][number]
        self.plan = IormPlan(database=[_directive(n, d) for n, d in facts["plan"].items()])
        self.mode: str = facts["flash_cache_mode"]
        self.cache_made_ns = self.log_made_ns = rack.began_ns
        self.flushing: bool | None = None
        self.extra: list[Extra] = []

    def answer(self, text: str, *, xml: bool = False) -> tuple[str, int]:
        """What CellCLI prints for a command, and its exit code."""
        began_ms = self.rack.service_began_ns(self.number) // 10**6
        try:
            command = parsed(text)
            if isinstance(command, Query):
                return self._list(command, xml, began_ms), 0
            return self._changed(command), 0
        except RefusedError as refused:
            words = str(refused)
            return answer.xml_error(words, self.name, began_ms) if xml else f"\n{words}\n", 1

    def facts(self) -> dict[str, Any]:
        """The cell in the model, as it is now."""
        return self.rack.cell(self.number)

    def _list(self, query: Query, xml: bool, began_ms: int) -> str:
        things = selected(query, _LISTS[query.kind](self))
        shown = columns(query, xml=xml)
        if xml:
            return answer.xml(things, shown, query.kind, self.name, began_ms)
        print_them = answer.detail if query.detail else answer.rows
        return print_them(things, shown)

    def _changed(self, change: Change) -> str:
        from dbdyno.rig.changes import carry_out

        try:
            return carry_out(self, change)
        except ModelError as error:
            raise RefusedError(2526, f"Pre-condition failed: {error.message}.") from error

    def free_bytes(self, facts: dict[str, Any], cell_disk: dict[str, Any]) -> int:
        """What of a cell disk belongs to nothing."""
        of_flash = sum(1 for disk in facts["cell_disks"] if disk["flash"])
        used = sum(g["bytes"] for g in facts["grid_disks"] if g["cell_disk"] == cell_disk["name"])
        used += sum(e.size_bytes for e in self.extra if e.cell_disk == cell_disk["name"])
        if cell_disk["flash"]:
            used += (facts["flash_log_bytes"] + facts["flash_cache_bytes"]) // of_flash
        return max(0, int(cell_disk["bytes"]) - int(used))


def _cell(cell: Cell) -> list[Thing]:
    facts, up_s = cell.facts(), (cell.rack.now_ns - cell.rack.started_ns[cell.number]) // 10**9
    mode = facts["flash_cache_mode"]
    days, rest = divmod(up_s, 86_400)
    return [{
        "name": word(cell.name), "cellVersion": word("dbdyno"), "cpuCount": whole(24),
        "flashCacheMode": word(MODES[cell.mode if mode == "none" else mode]),
        "id": word(cell.name), "makeModel": word(f"modelled: {cell.rack.title}"),
        "releaseVersion": word("dbdyno"), "status": word("online"),
        "upTime": word(f"{days} days, {rest // 3600}:{rest // 60 % 60:02}"),
        "cellsrvStatus": word("running"), "msStatus": word("running"),
        "rsStatus": word("running"),
    }]  # fmt: skip


def _cell_disks(cell: Cell) -> list[Thing]:
    facts = cell.facts()
    return [
        {
            "name": word(disk["name"]),
            "diskType": word("FlashDisk" if disk["flash"] else "HardDisk"),
            "freeSpace": size(cell.free_bytes(facts, disk)),
            "size": size(disk["bytes"]),
            "status": word("normal"),
        }
        for disk in facts["cell_disks"]
    ]


def _grid_disks(cell: Cell) -> list[Thing]:
    facts = cell.facts()
    flash = {disk["name"]: disk["flash"] for disk in facts["cell_disks"]}
    cache = f"{cell.name}_FLASHCACHE" if facts["flash_cache_bytes"] else ""

    def thing(name: str, disk: str, bytes_: int, offset: int, cached: bool, mode: str) -> Thing:
        on_flash = flash[disk]
        return {
            "name": word(name), "asmModeStatus": word(mode),
            "cachedBy": word("" if on_flash or not cached else cache),
            "cachingPolicy": word("default" if cached else "none"), "cellDisk": word(disk),
            "diskType": word("FlashDisk" if on_flash else "HardDisk"), "offset": size(offset),
            "size": size(bytes_), "status": word("active"),
        }  # fmt: skip

    found = [
        thing(g["name"], g["cell_disk"], g["bytes"], g["from_bytes"], g["cached"], "ONLINE")
        for g in facts["grid_disks"]
    ]
    found += [
        thing(e.name, e.cell_disk, e.size_bytes, e.offset_bytes, True, "UNUSED") for e in cell.extra
    ]
    return sorted(found, key=lambda one: one["name"].text)


def _flash_disks(facts: dict[str, Any]) -> str:
    return ",".join(disk["name"] for disk in facts["cell_disks"] if disk["flash"])


def _flash_cache(cell: Cell) -> list[Thing]:
    facts = cell.facts()
    if not facts["flash_cache_bytes"]:
        return []
    flush = ""
    if cell.flushing is not None:
        flush = "working" if facts["cached"]["dirty_bytes"] else "completed"
    return [{
        "name": word(f"{cell.name}_FLASHCACHE"), "cellDisk": word(_flash_disks(facts)),
        "creationTime": moment(cell.cache_made_ns), "flushstatus": word(flush),
        "effectiveCacheSize": size(facts["flash_cache_bytes"]),
        "size": size(facts["flash_cache_bytes"]), "status": word("normal"),
    }]  # fmt: skip


def _flash_log(cell: Cell) -> list[Thing]:
    facts = cell.facts()
    if not facts["flash_log_bytes"]:
        return []
    rows = cell.rack.samples[cell.number][-1].rows
    share = next((row[3] for row in rows if row[2] == "FL_EFFICIENCY_PERCENTAGE"), 100.0)
    return [{
        "name": word(f"{cell.name}_FLASHLOG"), "cellDisk": word(_flash_disks(facts)),
        "creationTime": moment(cell.log_made_ns), "efficiency": measured(share, ""),
        "effectiveSize": size(facts["flash_log_bytes"]),
        "size": size(facts["flash_log_bytes"]), "status": word("normal"),
    }]  # fmt: skip


def _content(cell: Cell) -> list[Thing]:
    cached = cell.facts()["cached"]
    if not cached["held_bytes"]:
        return []
    return [{
        "cachedKeepSize": whole(cached["kept_bytes"]), "cachedSize": whole(cached["held_bytes"]),
        "dbUniqueName": word(cell.rack.database), "hitCount": whole(cached["hits"]),
        "missCount": whole(cached["misses"]), "objectNumber": whole(NO_OBJECT),
        "tableSpaceNumber": whole(0),
    }]  # fmt: skip


def _metric(row: Row, at_ns: int) -> Thing:
    object_type, item, name, value, unit, kind = row
    return {
        "name": word(name), "alertState": word("normal"), "collectionTime": moment(at_ns),
        "metricObjectName": word(item), "metricType": word(TYPES[kind]),
        "metricValue": measured(value, unit), "objectType": word(object_type),
    }  # fmt: skip


def _sampled(cell: Cell, sample: Sample) -> list[Thing]:
    found = [_metric(row, sample.at_ns) for row in sample.rows]
    if not cell.extra:
        return found
    kinds = {row[2]: row for row in sample.rows if row[0] == "GRIDDISK"}
    found += [
        _metric((row[0], extra.name, row[2], 0.0, row[4], row[5]), sample.at_ns)
        for extra in cell.extra
        for row in kinds.values()
    ]
    return sorted(found, key=lambda one: (one["name"].text, one["metricObjectName"].text))


def _current(cell: Cell) -> list[Thing]:
    return _sampled(cell, cell.rack.samples[cell.number][-1])


def _history(cell: Cell) -> list[Thing]:
    return [
        one for sample in list(cell.rack.samples[cell.number]) for one in _sampled(cell, sample)
    ]


def _definitions(cell: Cell) -> list[Thing]:
    rows = {row[2]: row for row in cell.rack.samples[cell.number][-1].rows}
    return [
        {
            "name": word(name), "description": word(f'"{metric(name).meaning}"'),
            "metricType": word(TYPES[row[5]]), "objectType": word(row[0]), "unit": word(row[4]),
        }
        for name, row in rows.items()
    ]  # fmt: skip


def _iorm_plan(cell: Cell) -> list[Thing]:
    plan = cell.plan
    return [{
        "name": word(f"{cell.name}_IORMPLAN"), "catPlan": word(plan.category),
        "dbPlan": word("\n".join(plan.database)), "objective": word(plan.objective),
        "status": word("active" if plan.active else "inactive"),
    }]  # fmt: skip


def _no_alerts(cell: Cell) -> list[Thing]:
    """Nothing in the model breaks, so there is nothing to alert to."""
    del cell
    return []


def _directive(name: str, directive: dict[str, Any]) -> str:
    """A directive of the model as CellCLI writes it."""
    words = [f"name={name}"]
    if directive["level"]:
        words += [f"level={directive['level']}", f"allocation={directive['allocation']:g}"]
    else:
        words.append(f"share={directive['share']}")
    if directive["limit"] < 100:
        words.append(f"limit={directive['limit']:g}")
    for key, attribute in (("flash_cache", "flashCache"), ("flash_log", "flashLog")):
        words.append(f"{attribute}={'on' if directive[key] else 'off'}")
    return ",".join(words)


_LISTS: dict[str, Callable[[Cell], list[Thing]]] = {
    "cell": _cell,
    "celldisk": _cell_disks,
    "griddisk": _grid_disks,
    "flashcache": _flash_cache,
    "flashlog": _flash_log,
    "flashcachecontent": _content,
    "metriccurrent": _current,
    "metricdefinition": _definitions,
    "metrichistory": _history,
    "iormplan": _iorm_plan,
    "alerthistory": _no_alerts,
}
assert set(_LISTS) == set(ATTRIBUTES)
