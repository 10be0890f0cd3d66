"""The sections of a page: one file each, a pure function from the model to words.

A section is a `Section` with a `view` that picks and formats, and a template of the same name in
`templates/`. To add one: write both files, and name it in `ORDER`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from dbdyno.report.sections import (
    arms,
    classical,
    contributions,
    correlation,
    devices,
    engine,
    gates,
    lines,
    logs,
    method,
    metrics,
    pictures,
    race,
    run,
    statements,
    tails,
    verdict,
)
from dbdyno.report.sections.base import Section

__all__ = ["ORDER", "Section", "order"]

ORDER: tuple[Section, ...] = tuple(
    module.SECTION
    for module in (
        verdict,
        arms,
        logs,
        pictures,
        correlation,
        metrics,
        race,
        devices,
        contributions,
        lines,
        tails,
        classical,
        statements,
        gates,
        method,
        engine,
        run,
    )
)


PAGES = ("trace", "model", "snapshot")
"""Kinds with pages of their own, each in the package of that name beside this one."""


def order(model: Mapping[str, Any]) -> tuple[Section, ...]:
    """The sections of a page; some kinds have pages of their own."""
    kind = model.get("kind")
    if kind in PAGES:
        found: tuple[Section, ...] = import_module(f"dbdyno.report.{kind}").order(model)
        return found
    return ORDER
