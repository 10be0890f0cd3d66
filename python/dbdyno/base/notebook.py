"""HTML tables of results for notebooks; all text in them is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any


def facts_table(heading: str, facts: Mapping[str, Any]) -> str:
    """Return an HTML table with a heading and a row per fact; floats have four significant digits."""
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(_cell_text(value))}</td></tr>" for name, value in facts.items()
    )
    return f"<table><caption>{escape(heading)}</caption>{rows}</table>"


def _cell_text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "–" if value is None else str(value)
