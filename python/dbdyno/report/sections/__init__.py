"""The sections of a page: one file each, a pure function from the model to words.

A section is a `Section` with a `view` that picks and formats, and a template of the same name in
`templates/`. To add one: write both files, and name it in `ORDER`.
"""

from __future__ import annotations

from dbdyno.report.sections import (
    arms,
    classical,
    engine,
    gates,
    method,
    metrics,
    pictures,
    run,
    statements,
    verdict,
)
from dbdyno.report.sections.base import Section

__all__ = ["ORDER", "Section"]

ORDER: tuple[Section, ...] = tuple(
    module.SECTION
    for module in (
        verdict,
        arms,
        pictures,
        metrics,
        classical,
        statements,
        gates,
        method,
        engine,
        run,
    )
)
