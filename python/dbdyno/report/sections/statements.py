"""What single statements took in each arm; only where there is more than one statement."""

from __future__ import annotations

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base


def view(analysis: Analysis) -> base.View | None:
    """One row per statement and arm, or None for fewer than two statements."""
    statements = reading.entries(analysis, "statements")
    if len(statements) < 2:
        return None
    return {
        "statements": [
            {
                "text": fmt.text(statement.get("statement") or ""),
                "kind": fmt.line(statement.get("kind") or ""),
                "arms": [
                    {
                        "arm": base.arm(analysis, arm.get("arm")),
                        "ops": fmt.count(arm.get("ops")),
                        "mean": fmt.duration(arm.get("mean_ns")),
                        "p50": fmt.duration(arm.get("p50_ns")),
                        "p99": fmt.duration(arm.get("p99_ns")),
                    }
                    for arm in reading.entries(statement, "arms")
                ],
            }
            for statement in statements
        ]
    }


SECTION = base.Section("statements", "Statements", view)
