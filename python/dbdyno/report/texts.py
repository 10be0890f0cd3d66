"""Figures drawn with characters for a terminal, for those kinds that have such a drawing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

_FILES = {"curve": "curve_text", "timeline": "timeline_text", "machine": "machine"}
"""Module under `figures/` whose function `lines` draws this kind of figure."""


def draw_text(kind: str, data: Mapping[str, Any], width: int) -> list[Any]:
    """Return the lines of a figure, or an empty list if its kind has no such drawing."""
    if kind not in _FILES:
        return []
    lines: Callable[[Mapping[str, Any], int], list[Any]] = import_module(f"dbdyno.report.figures.{_FILES[kind]}").lines
    return lines(data, width)
