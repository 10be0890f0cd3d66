"""Whether the experiment can be believed: gates it had to pass, warnings with the next step."""

from __future__ import annotations

from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base

STATES = {
    True: {"word": "holds", "tone": "good", "sign": "✓"},
    False: {"word": "fails", "tone": "bad", "sign": "✗"},
    None: {"word": "not known", "tone": "doubt", "sign": "?"},
}
EFFECTS = {"withholds": "withholds the verdict", "provisional": "makes the verdict provisional"}
_ORDER = (False, None, True)


def view(analysis: Analysis) -> base.View | None:
    """Gates and warnings, or None where there are neither."""
    gates = reading.entries(analysis, "gates")
    warnings = reading.entries(analysis, "warnings")
    if not gates and not warnings:
        return None
    return {
        "gates": [_gate(gate) for state in _ORDER for gate in gates if _state(gate) is state],
        "warnings": [
            {
                "code": fmt.line(warning.get("code") or ""),
                "text": fmt.line(warning.get("text") or ""),
                "next": fmt.line(warning.get("next") or ""),
            }
            for warning in warnings
        ],
    }


def _state(gate: dict[str, Any]) -> bool | None:
    ok = gate.get("ok")
    return ok if ok in (True, False) else None


def _gate(gate: dict[str, Any]) -> base.View:
    """A gate; one that failed says what that does to the verdict, and what to do next."""
    state = _state(gate)
    return {
        "name": fmt.line(gate.get("name") or ""),
        "state": STATES[state],
        "failed": state is False,
        "text": fmt.line(gate.get("text") or ""),
        "effect": EFFECTS.get(str(gate.get("effect")), "") if state is False else "",
        "next": fmt.line(gate.get("next") or "") if state is False else "",
    }


SECTION = base.Section("gates", "Gates and warnings", view)
