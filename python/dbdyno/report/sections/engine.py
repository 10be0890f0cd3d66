"""The engine under test: its facts, and its settings folded away."""

from __future__ import annotations

from dbdyno.report import format as fmt
from dbdyno.report import reading
from dbdyno.report.reading import Analysis
from dbdyno.report.sections import base


def view(analysis: Analysis) -> base.View | None:
    """Facts and settings, or None where there are neither."""
    facts = reading.dig(analysis, "engine", "facts") or {}
    settings = reading.entries(analysis, "engine", "settings")
    if not facts and not settings:
        return None
    return {
        "facts": [(fmt.line(name), fmt.line("–" if fact is None else fact)) for name, fact in facts.items()],
        "settings": [
            tuple(fmt.line("" if row.get(key) is None else row[key]) for key in ("name", "value", "source"))
            for row in settings
        ],
    }


SECTION = base.Section("engine", "Engine", view)
