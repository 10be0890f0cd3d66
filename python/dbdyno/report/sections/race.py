"""The race of the smart flash log: who won, how often an outlier was prevented."""

from __future__ import annotations

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base


def view(analysis: Analysis) -> base.View | None:
    """One row per arm that raced, or None where none did."""
    given = reading.entries(analysis, "race")
    if not given:
        return None
    level = fmt.percent(given[0].get("level"), 3, trim=True)
    return {
        "level": level,
        "on_host": bool(reading.entries(analysis, "logs")),
        "passed": any(row.get("passed") for row in given),
        "timed": any(row.get("request_ns") is not None for row in given),
        "rows": [
            {
                "arm": base.arm(analysis, row.get("arm")),
                "races": fmt.count(row.get("races")),
                "disk": fmt.count(row.get("disk_first")),
                "flash": fmt.count(row.get("flash_first")),
                "share": fmt.percent(row.get("share"), 3),
                "interval": base.interval(row.get("low"), row.get("high")),
                "prevented": fmt.count(row.get("prevented")),
                "actual": fmt.count(row.get("outliers")),
                "flash_only": fmt.count(row.get("flash_outliers")),
                "passed": [f"{fmt.line(why)} {fmt.count(n)}" for why, n in (row.get("passed") or {}).items()],
                "served": fmt.duration(row.get("served_ns")),
                "request": fmt.duration(row.get("request_ns")),
            }
            for row in given
        ],
    }


SECTION = base.Section("race", "Disk or flash first", view)
