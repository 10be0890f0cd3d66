"""The textbook tests over all single waits, labelled for what they assume."""

from __future__ import annotations

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base


def view(analysis: Analysis) -> base.View | None:
    """One row per test, or None without any."""
    tests = reading.entries(analysis, "classical")
    if not tests:
        return None
    return {
        "rows": [
            {
                "arm": base.arm(analysis, test.get("arm")),
                "baseline": base.arm(analysis, test.get("baseline")),
                "test": fmt.line(test.get("test") or ""),
                "statistic": fmt.significant(test.get("statistic")),
                "df": fmt.count(test.get("df")),
                "p": fmt.log10_probability(test.get("log10_p")),
                "effect": fmt.line(test.get("effect") or ""),
                "note": fmt.line(test.get("note") or ""),
            }
            for test in tests
        ]
    }


SECTION = base.Section("classical", "Classical tests, for comparison", view)
