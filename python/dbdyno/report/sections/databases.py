"""What each database got where several share a model's storage."""

from __future__ import annotations

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base


def view(analysis: Analysis) -> base.View | None:
    """One row per arm and database, or None where there is one database."""
    given = reading.entries(analysis, "databases")
    if not given:
        return None
    return {
        "level": fmt.percent(given[0].get("level"), 3, trim=True),
        "rows": [
            {
                "arm": base.arm(analysis, row.get("arm")),
                "database": fmt.line(row.get("database") or "?"),
                "transactions": fmt.significant(row.get("transactions_per_s"), 4),
                "disk": fmt.significant(row.get("disk_per_s"), 4),
                "share": fmt.percent(row.get("share"), 3),
                "interval": base.interval(row.get("low"), row.get("high")),
                "wait": fmt.duration(row.get("wait_ns")),
                "flash": fmt.significant(row.get("flash_per_s"), 4),
            }
            for row in given
        ],
    }


SECTION = base.Section("databases", "Databases side by side", view)
