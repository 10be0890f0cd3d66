"""Statistics of a model's stations per arm: utilisation, queue, throughput, times, Little's law.

A station is anything that serves requests from a queue: a disk, a flash card, a channel of a host adapter, the cores.
Stations whose names differ only in numbers (`disk.0`, `disk.1`; `CD_00_cell01`, `CD_01_cell01`) are combined into one
row, with means over the stations and the utilisation of the busiest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dbdyno.base.json_types import TableRow
from dbdyno.study.analysis.contract.rows import DeviceRow

if TYPE_CHECKING:
    from dbdyno.study.analysis.measured.measures import Measures

_NUMBERED = re.compile(r"\.\d+(?=\.|/| |$)")
_NUMBER = re.compile(r"\d+")
ROWS_MOST = 60

_SQL = """
with by_station as (
  select arm, block, object,
    max(value) filter (metric = 'utilisation') as utilisation,
    max(value) filter (metric = 'servers') as servers,
    max(value) filter (metric = 'present') as present,
    max(value) filter (metric = 'queue') as queue,
    max(value) filter (metric = 'present_max') as present_max,
    max(value) filter (metric = 'completions') as completions,
    max(value) filter (metric = 'sojourn') as sojourn,
    max(value) filter (metric = 'wait') as wait,
    max(value) filter (metric = 'wait_max') as wait_max,
    max(value) filter (metric = 'little') as little
  from metrics where source = 'model' and object_type = 'station'
    and block in (select unnest($1::int[]))
  group by all
)
select arm, object, avg(utilisation), max(servers), avg(present), avg(queue), max(present_max),
  sum(completions), sum(sojourn * completions) / nullif(sum(completions), 0),
  sum(wait * completions) / nullif(sum(completions), 0), max(wait_max), sum(little), count(*)
from by_station group by all order by object, arm
"""
_NAMES = (
    "arm",
    "object",
    "utilisation",
    "servers",
    "present",
    "queue",
    "present_max",
    "completions",
    "sojourn_ns",
    "wait_ns",
    "wait_max_ns",
    "little_broken",
    "looks",
)


def rows_of_run(connection: Any, measures: Measures) -> list[DeviceRow]:
    """Return one row per arm and kind of station that served any request, the busiest first.

    `completions` is the total of the blocks that count, over all stations of the row. `sojourn_ns` is the mean time
    from arrival to departure, `wait_ns` the part of it before service. `queue` and `present` are the mean numbers of
    requests waiting and present at one station. `looks` is how often Little's law was checked, and `little_broken` how
    often it did not hold exactly.
    """
    blocks = [block.index for block in measures.arms[0].blocks]
    found = connection.execute(_SQL, [blocks]).fetchall()
    groups: dict[tuple[str, str], list[TableRow]] = {}
    for values in found:
        row = dict(zip(_NAMES, values, strict=True))
        kind = _NUMBER.sub("*", _NUMBERED.sub("", row["object"]))
        groups.setdefault((row["arm"], kind), []).append(row)
    arms = {arm.name: at for at, arm in enumerate(measures.arms)}
    virtual_s = _virtual_s(measures)
    rows = [
        _row(arms[arm], kind if len(own) > 1 else own[0]["object"], own, virtual_s[arm])
        for (arm, kind), own in groups.items()
        if sum(station["completions"] for station in own)
    ]
    peak: dict[str, float] = {}
    for one in rows:
        peak[one["station"]] = max(peak.get(one["station"], 0.0), one["utilisation_max"])
    rows.sort(key=lambda one: (-peak[one["station"]], one["station"], one["arm"]))
    return rows[:ROWS_MOST]


def _row(arm: int, kind: str, table_rows: list[TableRow], virtual_s: float) -> DeviceRow:
    done = sum(station["completions"] for station in table_rows)

    def mean(name: str) -> float:
        return float(sum(station[name] for station in table_rows) / len(table_rows))

    def per_request(name: str) -> float:
        return float(sum((s[name] or 0.0) * s["completions"] for s in table_rows) / done)

    return {
        "arm": arm,
        "station": kind,
        "stations": len(table_rows),
        "servers": table_rows[0]["servers"],
        "utilisation": mean("utilisation"),
        "utilisation_max": max(station["utilisation"] for station in table_rows),
        "queue": mean("queue"),
        "present": mean("present"),
        "present_max": max(station["present_max"] for station in table_rows),
        "completions": done,
        "per_s": done / virtual_s if virtual_s else None,
        "sojourn_ns": per_request("sojourn_ns"),
        "wait_ns": per_request("wait_ns"),
        "service_ns": per_request("sojourn_ns") - per_request("wait_ns"),
        "wait_max_ns": max(station["wait_max_ns"] for station in table_rows),
        "looks": sum(station["looks"] for station in table_rows),
        "little_broken": sum(station["little_broken"] for station in table_rows),
    }


def _virtual_s(measures: Measures) -> dict[str, float]:
    """Return the virtual time that counts in each arm [s]: that of its sessions, each from the end of its warm-up."""
    found = {}
    for at, arm in enumerate(measures.arms):
        reports = [own for block in arm.blocks for own in block.report["arms"] if own["arm"] == at]
        found[arm.name] = sum(own["busy_ns"] for own in reports) / 1e9 / max(arm.sessions, 1)
    return found
