"""Modelled devices below the engines of a run: their files, the kernel's cost of a request, and late replies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.base.json_types import TableRow
from dbdyno.study.analysis.contract.parts import VolumeRow
from dbdyno.study.analysis.contract.rows import Caution

if TYPE_CHECKING:
    from dbdyno.evidence.run import Run
    from dbdyno.study.analysis.measured.measures import Measures

_SQL = """
select metric, kind, arg_max(value, at_ns), max(value) - min(value)
from metrics
where source = 'device' and object in ($1, $2) and arm in (select unnest($3::text[]))
  and block in (select unnest($4::int[]))
group by all
"""
REQUESTS_LEAST = 100
"""Smallest number of requests to a device for which its late replies are reported."""
LATE_SHARE = 0.1
"""Share of a request's time above which late replies cause a warning."""


def rows_of_run(connection: Any, run: Run, measures: Measures) -> list[VolumeRow]:
    """Return one row per modelled device below a server: its requests in blocks that count, its times since the mount.

    `arms` has the numbers of the arms that use the device.
    """
    blocks = [block.index for block in measures.arms[0].blocks]
    rows: list[VolumeRow] = []
    for volume in run.manifest.volumes:
        arms = [at for at, arm in enumerate(run.manifest.arms) if arm["target"] == volume["target"]]
        names = ["", *(run.manifest.arms[at]["name"] for at in arms)]
        objects = [volume["carries"], f"{volume['carries']} of {volume['target']}"]
        found = connection.execute(_SQL, [*objects, names, blocks]).fetchall()
        rows.append(_row(volume, arms, {metric: (kind, last, grown) for metric, kind, last, grown in found}))
    return rows


def _row(volume: TableRow, arms: list[int], found: dict[str, tuple[str, float, float]]) -> VolumeRow:
    def value(name: str) -> float | None:
        kind, last, grown = found.get(name, ("", None, None))
        return grown if kind == "counter" else last

    return {
        "arms": arms,
        "carries": volume["carries"],
        "device": volume["device"],
        "settings": {str(name): str(given) for name, given in volume["settings"].items()},
        "direct_io": bool(volume["direct_io"]),
        "polls": bool(volume.get("polls")),
        "floor_ns": volume["floor_ns"],
        "reads": value("reads"),
        "writes": value("writes"),
        "flushes": value("flushes"),
        "read_p50_ns": value("read_p50"),
        "write_p50_ns": value("write_p50"),
        "late_p50_ns": value("late_p50"),
        "late_p99_ns": value("late_p99"),
        "late_max_ns": value("late_max"),
    }


def warnings(rows: list[VolumeRow]) -> list[Caution]:
    """Return a warning for each device with late replies, whose times then depend partly on this machine."""
    found: dict[str, Caution] = {}
    for row in rows:
        if (row["reads"] or 0) + (row["writes"] or 0) < REQUESTS_LEAST:
            continue
        times = [time for time in (row["read_p50_ns"], row["write_p50_ns"]) if time]
        late = row["late_p99_ns"] or 0
        if times and late > LATE_SHARE * min(times):
            found[f"{row['device']} {row['carries']}"] = {
                "code": "late device",
                "text": f"1 of 100 replies of {row['device']} ({row['carries']}) were sent {late / 1e3:,.0f} us late or"
                f" more; half of its requests take {min(times) / 1e3:,.0f} us or less",
                "next": "run it on an idle machine with a core to spare, or choose a slower device",
            }
    return list(found.values())
