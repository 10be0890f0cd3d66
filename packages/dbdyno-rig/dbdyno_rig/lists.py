"""Objects that each LIST of a modelled cell shows, from the model's current state or from a collection.

Metrics come from the cell's collections; everything else shows the state at the time of the LIST.
"""

from __future__ import annotations

from collections.abc import Callable

from dbdyno.base.json_types import JsonObject
from dbdyno.cells.catalogue import metric
from dbdyno_rig.alerts import Alert
from dbdyno_rig.objects import (
    ATTRIBUTES,
    NOTHING,
    ListedObject,
    ShownValue,
    integer_value,
    metric_value,
    size_value,
    text_value,
    time_value,
)
from dbdyno_rig.rack import Row, Sample
from dbdyno_rig.state import CellState

TYPES = {"counter": "Cumulative", "gauge": "Instantaneous", "rate": "Rate"}
MODES = {"write-through": "WriteThrough", "write-back": "WriteBack", "none": "WriteThrough"}
NO_OBJECT = 4_294_967_295
"""Object number under which cells count data of an unknown segment."""


def _cell(cell: CellState) -> list[ListedObject]:
    facts, up_s = cell.facts(), (cell.rack.now_ns - cell.rack.started_ns[cell.number]) // 10**9
    mode = facts["flash_cache_mode"]
    days, rest = divmod(up_s, 86_400)
    return [
        {
            "name": text_value(cell.name),
            "cellVersion": text_value("dbdyno"),
            "cpuCount": integer_value(24),
            "flashCacheMode": text_value(MODES[cell.mode if mode == "none" else mode]),
            "id": text_value(cell.name),
            "makeModel": text_value(f"modelled: {cell.rack.title}"),
            "releaseVersion": text_value("dbdyno"),
            "status": text_value("online"),
            "upTime": text_value(f"{days} days, {rest // 3600}:{rest // 60 % 60:02}"),
            "cellsrvStatus": text_value("running"),
            "msStatus": text_value("running"),
            "rsStatus": text_value("running"),
        }
    ]


def _cell_disks(cell: CellState) -> list[ListedObject]:
    facts = cell.facts()
    return [
        {
            "name": text_value(disk["name"]),
            "diskType": text_value("FlashDisk" if disk["flash"] else "HardDisk"),
            "freeSpace": size_value(cell.free_bytes(facts, disk)),
            "size": size_value(disk["bytes"]),
            "status": text_value("normal"),
        }
        for disk in facts["cell_disks"]
    ]


def _grid_disks(cell: CellState) -> list[ListedObject]:
    facts = cell.facts()
    flash = {disk["name"]: disk["flash"] for disk in facts["cell_disks"]}
    cache = f"{cell.name}_FLASHCACHE" if facts["flash_cache_bytes"] else ""

    def thing(name: str, disk: str, bytes_: int, offset: int, cached: bool, mode: str) -> ListedObject:
        on_flash = flash[disk]
        return {
            "name": text_value(name),
            "asmModeStatus": text_value(mode),
            "cachedBy": text_value("" if on_flash or not cached else cache),
            "cachingPolicy": text_value("default" if cached else "none"),
            "cellDisk": text_value(disk),
            "diskType": text_value("FlashDisk" if on_flash else "HardDisk"),
            "offset": size_value(offset),
            "size": size_value(bytes_),
            "status": text_value("active"),
        }

    found = [
        thing(g["name"], g["cell_disk"], g["bytes"], g["from_bytes"], g["cached"], "ONLINE")
        for g in facts["grid_disks"]
    ]
    found += [thing(e.name, e.cell_disk, e.size_bytes, e.offset_bytes, True, "UNUSED") for e in cell.extra]
    return sorted(found, key=lambda one: one["name"].text)


def _flash_disks(facts: JsonObject) -> str:
    return ",".join(disk["name"] for disk in facts["cell_disks"] if disk["flash"])


def _flash_cache(cell: CellState) -> list[ListedObject]:
    facts = cell.facts()
    if not facts["flash_cache_bytes"]:
        return []
    flush = ""
    if cell.flushing is not None:
        flush = "working" if facts["cached"]["dirty_bytes"] else "completed"
    return [
        {
            "name": text_value(f"{cell.name}_FLASHCACHE"),
            "cellDisk": text_value(_flash_disks(facts)),
            "creationTime": time_value(cell.cache_made_ns),
            "flushstatus": text_value(flush),
            "effectiveCacheSize": size_value(facts["flash_cache_bytes"]),
            "size": size_value(facts["flash_cache_bytes"]),
            "status": text_value("normal"),
        }
    ]


def _flash_log(cell: CellState) -> list[ListedObject]:
    facts = cell.facts()
    if not facts["flash_log_bytes"]:
        return []
    rows = cell.rack.samples[cell.number][-1].rows
    share = next((row[3] for row in rows if row[2] == "FL_EFFICIENCY_PERCENTAGE"), 100.0)
    return [
        {
            "name": text_value(f"{cell.name}_FLASHLOG"),
            "cellDisk": text_value(_flash_disks(facts)),
            "creationTime": time_value(cell.log_made_ns),
            "efficiency": metric_value(share, ""),
            "effectiveSize": size_value(facts["flash_log_bytes"]),
            "size": size_value(facts["flash_log_bytes"]),
            "status": text_value("normal"),
        }
    ]


def _content(cell: CellState) -> list[ListedObject]:
    cached = cell.facts()["cached"]
    if not cached["held_bytes"]:
        return []
    return [
        {
            "cachedKeepSize": integer_value(cached["kept_bytes"]),
            "cachedSize": integer_value(cached["held_bytes"]),
            "dbUniqueName": text_value(cell.rack.database),
            "hitCount": integer_value(cached["hits"]),
            "missCount": integer_value(cached["misses"]),
            "objectNumber": integer_value(NO_OBJECT),
            "tableSpaceNumber": integer_value(0),
        }
    ]


def _metric(cell: CellState, row: Row, at_ns: int) -> ListedObject:
    object_type, item, name, value, unit, kind = row
    return {
        "name": text_value(name),
        "alertState": text_value(cell.alerts.state(row, at_ns)),
        "collectionTime": time_value(at_ns),
        "ageInMinutes": _age(cell, at_ns),
        "metricObjectName": text_value(item),
        "metricType": text_value(TYPES[kind]),
        "metricValue": metric_value(value, unit),
        "objectType": text_value(object_type),
    }


def _sample_metrics(cell: CellState, sample: Sample) -> list[ListedObject]:
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


def _current(cell: CellState) -> list[ListedObject]:
    return _sample_metrics(cell, cell.rack.samples[cell.number][-1])


def _history(cell: CellState) -> list[ListedObject]:
    return [one for sample in list(cell.rack.samples[cell.number]) for one in _sample_metrics(cell, sample)]


def _definitions(cell: CellState) -> list[ListedObject]:
    rows = {row[2]: row for row in cell.rack.samples[cell.number][-1].rows}
    return [
        {
            "name": text_value(name),
            "description": text_value(f'"{metric(name).meaning}"'),
            "metricType": text_value(TYPES[row[5]]),
            "objectType": text_value(row[0]),
            "unit": text_value(row[4]),
        }
        for name, row in rows.items()
    ]


def _iorm_plan(cell: CellState) -> list[ListedObject]:
    plan = cell.plan
    return [
        {
            "name": text_value(f"{cell.name}_IORMPLAN"),
            "catPlan": text_value(plan.category),
            "dbPlan": text_value("\n".join(plan.database)),
            "objective": text_value(plan.objective),
            "status": text_value("active" if plan.active else "inactive"),
        }
    ]


def _alert_history(cell: CellState) -> list[ListedObject]:
    return [
        {
            "name": text_value(alert.name),
            "alertMessage": text_value(f'"{_message(alert)}"'),
            "alertSequenceID": integer_value(alert.sequence),
            "alertShortName": text_value(alert.row[2]),
            "alertType": text_value("Stateful"),
            "beginTime": time_value(alert.begin_ns),
            "endTime": time_value(alert.end_ns) if alert.end_ns is not None else NOTHING,
            "examinedBy": text_value(alert.examined_by),
            "metricObjectName": text_value(alert.row[1]),
            "metricValue": metric_value(alert.row[3], alert.row[4]),
            "sequenceBeginTime": time_value(alert.first_ns),
            "severity": text_value(alert.severity),
            "ageInMinutes": _age(cell, alert.begin_ns),
        }
        for alert in cell.alerts.entries()
    ]


def _message(alert: Alert) -> str:
    """Return an alert's message in dbdyno's own words, because the wording of a real cell is unknown."""
    limits = {"warning": alert.threshold.warning, "critical": alert.threshold.critical}
    value = metric_value(alert.row[3], alert.row[4]).text
    where = f"{alert.row[2]} of {alert.row[1]}"
    if alert.severity not in limits:
        return f"{where} is within its threshold again. Value: {value}"
    limit = f"{alert.threshold.comparison} {limits[alert.severity]:g}"
    return f"{where} has crossed its {alert.severity} threshold. Value: {value}. Limit: {limit}"


def _thresholds(cell: CellState) -> list[ListedObject]:
    def limit(value: float | None) -> ShownValue:
        return NOTHING if value is None else ShownValue(f"{value:.15g}", f"{value:.15g}", value)

    return [
        {
            "name": text_value(one.name),
            "comparison": text_value(one.comparison),
            "critical": limit(one.critical),
            "observation": integer_value(one.observation),
            "occurrences": integer_value(one.occurrences),
            "warning": limit(one.warning),
        }
        for one in cell.alerts.thresholds()
    ]


def _age(cell: CellState, at_ns: int) -> ShownValue:
    return integer_value((cell.rack.clock_ns() - at_ns) // (60 * 10**9))


LISTS: dict[str, Callable[[CellState], list[ListedObject]]] = {
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
"""Functions that list the objects, by kind of object."""
assert set(LISTS) == set(ATTRIBUTES)
