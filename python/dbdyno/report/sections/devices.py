"""What the devices of a model did: how busy, how long the queue, how fast, and Little's law."""

from __future__ import annotations

from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base


def view(analysis: Analysis) -> base.View | None:
    """One row per station and arm, or None where nothing was modelled."""
    given = reading.entries(analysis, "devices")
    if not given:
        return None
    stations = list(dict.fromkeys(row.get("station") for row in given))
    broken = sum(int(fmt.number(row.get("little_broken")) or 0) for row in given)
    looks = sum(int(fmt.number(row.get("looks")) or 0) for row in given)
    return {
        "groups": [
            {
                "station": _named(next(row for row in given if row.get("station") == station)),
                "rows": [_row(analysis, row) for row in given if row.get("station") == station],
            }
            for station in stations
        ],
        "law": _law(broken, looks),
        "holds": not broken,
        "several": len(reading.entries(analysis, "arms")) > 1,
    }


def _law(broken: int, looks: int) -> str:
    """Little's law in a sentence."""
    if broken:
        return f"Little's law did not hold in {fmt.count(broken)} of {fmt.count(looks)} looks."
    return (
        "Little's law (mean number present = arrivals per time × mean time here) holds exactly at "
        f"each station in each block: {fmt.count(looks)} looks."
    )


def _named(row: dict[str, Any]) -> str:
    """A station's name, with how many there are and how many they serve at once."""
    many, servers = fmt.number(row.get("stations")) or 1, fmt.number(row.get("servers")) or 1
    words = fmt.line(row.get("station") or "?")
    words += f" × {fmt.count(many)}" if many > 1 else ""
    return words + (f", {fmt.count(servers)} at once" if servers > 1 else "")


def _row(analysis: Analysis, row: dict[str, Any]) -> base.View:
    busiest = fmt.number(row.get("utilisation_max")) or 0.0
    mean = fmt.number(row.get("utilisation")) or 0.0
    spread = (fmt.number(row.get("stations")) or 1) > 1 and busiest - mean >= 0.005
    return {
        "arm": base.arm(analysis, row.get("arm")),
        "bar": min(max(mean, 0.0), 1.0),
        "busy": fmt.percent(mean),
        "busiest": fmt.percent(busiest) if spread else "",
        "queue": fmt.significant(row.get("queue"), 3),
        "present": fmt.significant(row.get("present"), 3),
        "most": fmt.count(row.get("present_max")),
        "rate": fmt.significant(row.get("per_s"), 4),
        "wait": fmt.duration(row.get("wait_ns")),
        "service": fmt.duration(row.get("service_ns")),
        "here": fmt.duration(row.get("sojourn_ns")),
        "longest": fmt.duration(row.get("wait_max_ns")),
    }


SECTION = base.Section("devices", "Devices", view)
