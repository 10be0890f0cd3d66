"""Objects that each LIST of a modelled cell shows, from the model's current state or from a collection.

Metrics are those of the cell's collections; everything else is current when asked.
"""

from __future__ import annotations

from collections.abc import Callable

from dbdyno.base.json_types import JsonObject
from dbdyno.cells.catalogue import metric
from dbdyno_rig.alerts import Alert
from dbdyno_rig.rack import Row, Sample
from dbdyno_rig.state import CellState
from dbdyno_rig.things import (
    ATTRIBUTES,
    NOTHING,
    Shown,
    Thing,
    measured,
    moment,
    size,
    whole,
    word,
)

TYPES = {"counter": "Cumulative", "gauge": "Instantaneous", "rate": "Rate"}
MODES = {"write-through": "WriteThrough", "write-back": "WriteBack", "none": "WriteThrough"}
NO_OBJECT = 4_294_967_295
"""Object number under which cells count data of an unknown segment."""


def _cell(cell: CellState) -> list[Thing]:
    facts, up_s = cell.facts(), (cell.rack.now_ns - cell.rack.started_ns[cell.number]) // 10**9
    mode = facts["flash_cache_mode"]
    days, rest = divmod(up_s, 86_400)
    return [
        {
            "name": word(cell.name),
            "cellVersion": word("dbdyno"),
            "cpuCount": whole(24),
            "flashCacheMode": word(MODES[cell.mode if mode == "none" else mode]),
            "id": word(cell.name),
            "makeModel": word(f"modelled: {cell.rack.title}"),
            "releaseVersion": word("dbdyno"),
            "status": word("online"),
            "upTime": word(f"{days} days, {rest // 3600}:{rest // 60 % 60:02}"),
            "cellsrvStatus": word("running"),
            "msStatus": word("running"),
            "rsStatus": word("running"),
        }
    ]


def _cell_disks(cell: CellState) -> list[Thing]:
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


def _grid_disks(cell: CellState) -> list[Thing]:
    facts = cell.facts()
    flash = {disk["name"]: disk["flash"] for disk in facts["cell_disks"]}
    cache = f"{cell.name}_FLASHCACHE" if facts["flash_cache_bytes"] else ""

    def thing(name: str, disk: str, bytes_: int, offset: int, cached: bool, mode: str) -> Thing:
        on_flash = flash[disk]
        return {
            "name": word(name),
            "asmModeStatus": word(mode),
            "cachedBy": word("" if on_flash or not cached else cache),
            "cachingPolicy": word("default" if cached else "none"),
            "cellDisk": word(disk),
            "diskType": word("FlashDisk" if on_flash else "HardDisk"),
            "offset": size(offset),
            "size": size(bytes_),
            "status": word("active"),
        }

    found = [
        thing(g["name"], g["cell_disk"], g["bytes"], g["from_bytes"], g["cached"], "ONLINE")
        for g in facts["grid_disks"]
    ]
    found += [thing(e.name, e.cell_disk, e.size_bytes, e.offset_bytes, True, "UNUSED") for e in cell.extra]
    return sorted(found, key=lambda one: one["name"].text)


def _flash_disks(facts: JsonObject) -> str:
    return ",".join(disk["name"] for disk in facts["cell_disks"] if disk["flash"])


def _flash_cache(cell: CellState) -> list[Thing]:
    facts = cell.facts()
    if not facts["flash_cache_bytes"]:
        return []
    flush = ""
    if cell.flushing is not None:
        flush = "working" if facts["cached"]["dirty_bytes"] else "completed"
    return [
        {
            "name": word(f"{cell.name}_FLASHCACHE"),
            "cellDisk": word(_flash_disks(facts)),
            "creationTime": moment(cell.cache_made_ns),
            "flushstatus": word(flush),
            "effectiveCacheSize": size(facts["flash_cache_bytes"]),
            "size": size(facts["flash_cache_bytes"]),
            "status": word("normal"),
        }
    ]


def _flash_log(cell: CellState) -> list[Thing]:
    facts = cell.facts()
    if not facts["flash_log_bytes"]:
        return []
    rows = cell.rack.samples[cell.number][-1].rows
    share = next((row[3] for row in rows if row[2] == "FL_EFFICIENCY_PERCENTAGE"), 100.0)
    return [
        {
            "name": word(f"{cell.name}_FLASHLOG"),
            "cellDisk": word(_flash_disks(facts)),
            "creationTime": moment(cell.log_made_ns),
            "efficiency": measured(share, ""),
            "effectiveSize": size(facts["flash_log_bytes"]),
            "size": size(facts["flash_log_bytes"]),
            "status": word("normal"),
        }
    ]


def _content(cell: CellState) -> list[Thing]:
    cached = cell.facts()["cached"]
    if not cached["held_bytes"]:
        return []
    return [
        {
            "cachedKeepSize": whole(cached["kept_bytes"]),
            "cachedSize": whole(cached["held_bytes"]),
            "dbUniqueName": word(cell.rack.database),
            "hitCount": whole(cached["hits"]),
            "missCount": whole(cached["misses"]),
            "objectNumber": whole(NO_OBJECT),
            "tableSpaceNumber": whole(0),
        }
    ]


def _metric(cell: CellState, row: Row, at_ns: int) -> Thing:
    object_type, item, name, value, unit, kind = row
    return {
        "name": word(name),
        "alertState": word(cell.alerts.state(row, at_ns)),
        "collectionTime": moment(at_ns),
        "ageInMinutes": _age(cell, at_ns),
        "metricObjectName": word(item),
        "metricType": word(TYPES[kind]),
        "metricValue": measured(value, unit),
        "objectType": word(object_type),
    }


def _sample_metrics(cell: CellState, sample: Sample) -> list[Thing]:
    found = [_metric(cell, row, sample.at_ns) for row in sample.rows]
    if not cell.extra:
        return found
    kinds = {row[2]: row for row in sample.rows if row[0] == "GRIDDISK"}
    found += [
        _metric(cell, (row[0], extra.name, row[2], 0.0, row[4], row[5]), sample.at_ns)
        for extra in cell.extra
        for row in kinds.values()
    ]
    return sorted(found, key=lambda one: (one["name"].text, one["metricObjectName"].text))


def _current(cell: CellState) -> list[Thing]:
    return _sample_metrics(cell, cell.rack.samples[cell.number][-1])


def _history(cell: CellState) -> list[Thing]:
    return [one for sample in list(cell.rack.samples[cell.number]) for one in _sample_metrics(cell, sample)]


def _definitions(cell: CellState) -> list[Thing]:
    rows = {row[2]: row for row in cell.rack.samples[cell.number][-1].rows}
    return [
        {
            "name": word(name),
            "description": word(f'"{metric(name).meaning}"'),
            "metricType": word(TYPES[row[5]]),
            "objectType": word(row[0]),
            "unit": word(row[4]),
        }
        for name, row in rows.items()
    ]


def _iorm_plan(cell: CellState) -> list[Thing]:
    plan = cell.plan
    return [
        {
            "name": word(f"{cell.name}_IORMPLAN"),
            "catPlan": word(plan.category),
            "dbPlan": word("\n".join(plan.database)),
            "objective": word(plan.objective),
            "status": word("active" if plan.active else "inactive"),
        }
    ]


def _alert_history(cell: CellState) -> list[Thing]:
    return [
        {
            "name": word(alert.name),
            "alertMessage": word(f'"{_message(alert)}"'),
            "alertSequenceID": whole(alert.sequence),
            "alertShortName": word(alert.row[2]),
            "alertType": word("Stateful"),
            "beginTime": moment(alert.begin_ns),
            "endTime": moment(alert.end_ns) if alert.end_ns is not None else NOTHING,
            "examinedBy": word(alert.examined_by),
            "metricObjectName": word(alert.row[1]),
            "metricValue": measured(alert.row[3], alert.row[4]),
            "sequenceBeginTime": moment(alert.first_ns),
            "severity": word(alert.severity),
            "ageInMinutes": _age(cell, alert.begin_ns),
        }
        for alert in cell.alerts.entries()
    ]


def _message(alert: Alert) -> str:
    """Return an alert's message in dbdyno's own words, because the wording of a real cell is unknown."""
    limits = {"warning": alert.threshold.warning, "critical": alert.threshold.critical}
    value = measured(alert.row[3], alert.row[4]).text
    where = f"{alert.row[2]} of {alert.row[1]}"
    if alert.severity not in limits:
        return f"{where} is within its threshold again. Value: {value}"
    limit = f"{alert.threshold.comparison} {limits[alert.severity]:g}"
    return f"{where} has crossed its {alert.severity} threshold. Value: {value}. Limit: {limit}"


def _thresholds(cell: CellState) -> list[Thing]:
    def limit(value: float | None) -> Shown:
        return NOTHING if value is None else Shown(f"{value:.15g}", f"{value:.15g}", value)

    return [
        {
            "name": word(one.name),
            "comparison": word(one.comparison),
            "critical": limit(one.critical),
            "observation": whole(one.observation),
            "occurrences": whole(one.occurrences),
            "warning": limit(one.warning),
        }
        for one in cell.alerts.thresholds()
    ]


def _age(cell: CellState, at_ns: int) -> Shown:
    return whole((cell.rack.clock_ns() - at_ns) // (60 * 10**9))


LISTS: dict[str, Callable[[CellState], list[Thing]]] = {
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
    "alerthistory": _alert_history,
    "threshold": _thresholds,
}
"""Function that lists the objects of each kind."""
assert set(LISTS) == set(ATTRIBUTES)
