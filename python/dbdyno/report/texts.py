"""Figures drawn with characters, for a terminal: those that have such a drawing, by the figure's kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

_FILES = {"curve": "curve_text", "timeline": "timeline_text", "machine": "machine"}
"""The file under `figures/` whose `lines` draws a kind."""


def drawn(kind: str, data: Mapping[str, Any], width: int) -> list[Any]:
    """The lines of a figure, or none."""
    if kind not in _FILES:
        return []
    lines: Callable[[Mapping[str, Any], int], list[Any]] = import_module(f"dbdyno.report.figures.{_FILES[kind]}").lines
    return lines(data, width)
