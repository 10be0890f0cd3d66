"""The engine under test: its facts, and its settings folded away."""

from __future__ import annotations

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base


def view(analysis: Analysis) -> base.View | None:
    """Facts and settings, or None where there are neither."""
    facts = reading.dig(analysis, "engine", "facts") or {}
    settings = reading.entries(analysis, "engine", "settings")
    if not facts and not settings:
        return None
    return {
        "facts": [_fact(str(name), fact) for name, fact in facts.items()],
        "settings": [
            tuple(fmt.line("" if row.get(key) is None else row[key]) for key in ("name", "value", "source"))
            for row in settings
        ],
    }


def _fact(name: str, fact: object) -> tuple[str, str]:
    """A fact as a reader would say it: `host memory` `23.5 GiB`, `in recovery` `no`."""
    if name.endswith("_bytes") and fmt.number(fact) is not None:
        return fmt.line(name.removesuffix("_bytes").replace("_", " ")), fmt.size(fact)
    words = {None: "–", True: "yes", False: "no"}.get(fact, fact) if fact is None or isinstance(fact, bool) else fact
    return fmt.line(name.replace("_", " ")), fmt.line(words)


SECTION = base.Section("engine", "Engine", view)
