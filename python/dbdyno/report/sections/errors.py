"""What failed: errors by SQLSTATE, per arm and statement."""

from __future__ import annotations

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base

SHOWN = 20
"""Rows shown, the most frequent first; the analysis has all."""


def view(analysis: Analysis) -> base.View | None:
    """One row per arm, statement and SQLSTATE, or None where nothing failed."""
    given = reading.entries(analysis, "errors")
    if not given:
        return None
    return {
        "rows": [
            {
                "arm": base.arm(analysis, row.get("arm")),
                "statement": fmt.line(row.get("statement") or "", longest=80),
                "code": fmt.line(row.get("sqlstate") or ""),
                "meaning": fmt.line(row.get("meaning") or ""),
                "failed": fmt.count(row.get("failed")),
                "tried": fmt.count(row.get("tried")),
                "share": fmt.percent(_share(row.get("failed"), row.get("tried"))),
            }
            for row in given[:SHOWN]
        ],
        "left_out": len(given) - SHOWN if len(given) > SHOWN else 0,
    }


def _share(failed: object, tried: object) -> float | None:
    part, whole = fmt.number(failed), fmt.number(tried)
    return part / whole if part is not None and whole else None


SECTION = base.Section("errors", "Errors", view)
