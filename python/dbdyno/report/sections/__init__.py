"""The sections of a page: one file each, a pure function from the model to words.

A section is a `Section` with a `view` that picks and formats, and a template of the same name in
`templates/`. To add one: write both files, and name it in `ORDER`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.report.sections import (
    arms,
    classical,
    contributions,
    correlation,
    engine,
    gates,
    lines,
    logs,
    method,
    metrics,
    pictures,
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


def order(model: Mapping[str, Any]) -> tuple[Section, ...]:
    """The sections of a page; a page about traces or models has its own."""
    if model.get("kind") == "trace":
        from dbdyno.report import trace

        return trace.order(model)
    if model.get("kind") == "model":
        from dbdyno.report import model as models

        return models.order(model)
    return ORDER
