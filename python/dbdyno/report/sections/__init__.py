"""The sections of a page: one file each, a pure function from the model to words.

A section is a `Section` with a `view` that picks and formats, and a template of the same name in
`templates/`. To add one: write both files, and name it in `ORDER`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from dbdyno.report.sections.base import Section

__all__ = ["ORDER", "Section", "order"]

ORDER = (
    "verdict",
    "account",
    "changes",
    "arms",
    "errors",
    "logs",
    "pictures",
    "correlation",
    "metrics",
    "race",
    "databases",
    "devices",
    "contributions",
    "pairs",
    "lines",
    "tails",
    "classical",
    "statements",
    "gates",
    "method",
    "engine",
    "run",
)
"""The sections of a run's page. They and what they draw with are imported when a page is made."""

OWN = {
    "trace": "dbdyno.report.trace",
    "snapshot": "dbdyno.report.snapshot",
    "model": "dbdyno.report.model",
    "cells": "dbdyno.report.cells",
}
"""Kinds of page with sections of their own, and the packages that know them."""


def order(model: Mapping[str, Any]) -> tuple[Section, ...]:
    """The sections of a page; one about traces, snapshots, models or cells has its own."""
    kind = model.get("kind")
    if kind in OWN:
        own: tuple[Section, ...] = importlib.import_module(OWN[kind]).order(model)
        return own
    return tuple(importlib.import_module(f"{__name__}.{name}").SECTION for name in ORDER)
