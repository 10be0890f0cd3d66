"""Whether the experiment can be believed: gates it had to pass, warnings with the next step."""

from __future__ import annotations

from dbdyno.report import format as fmt
from dbdyno.report import reading
from dbdyno.report.reading import Analysis
from dbdyno.report.sections import base

STATES = {
    True: {"word": "holds", "tone": "good", "sign": "✓"},
    False: {"word": "fails", "tone": "bad", "sign": "✗"},
    None: {"word": "not known", "tone": "doubt", "sign": "?"},
}


def view(analysis: Analysis) -> base.View | None:
    """Gates and warnings, or None where there are neither."""
    gates = reading.entries(analysis, "gates")
    warnings = reading.entries(analysis, "warnings")
    if not gates and not warnings:
        return None
    return {
        "gates": [
            {
                "name": fmt.line(gate.get("name") or ""),
                "state": STATES[gate.get("ok") if gate.get("ok") in (True, False) else None],
                "text": fmt.line(gate.get("text") or ""),
            }
            for gate in gates
        ],
        "warnings": [
            {
                "code": fmt.line(warning.get("code") or ""),
                "text": fmt.line(warning.get("text") or ""),
                "next": fmt.line(warning.get("next") or ""),
            }
            for warning in warnings
        ],
    }


SECTION = base.Section("gates", "Gates and warnings", view)
