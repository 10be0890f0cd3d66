"""Pages made of models: one file per kind of page.

Nothing here judges and nothing draws: a builder picks, names and orders; `dbdyno.report` renders what it
made. To add a kind: a file beside this one with `page(model)`, and a row in `BUILDERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from dbdyno.page import Page
from dbdyno.pages import reading

BUILDERS = {
    "snapshot": "snapshot",
    "cells": "cells",
    "model": "model",
    "trace": "trace",
    "trend": "trend",
    "flow": "flow",
    "flash": "flash",
    "move": "move",
    "advice": "advice",
}
"""The file that builds a kind of page; all others are runs."""


def page_of(given: Page | Mapping[str, Any], **options: bool) -> Page:
    """A page as it is, or the page of a model.

    Raises:
        ReportError: the model has another schema or kind, or is torn.
    """
    if isinstance(given, Page):
        return given
    safe = reading.read(given)
    builder = import_module(f"dbdyno.pages.{BUILDERS.get(str(safe['kind']), 'run')}")
    made: Page = builder.page(safe, **options)
    return with_source(made, given)


def with_source(page: Page, source: Mapping[str, Any]) -> Page:
    """The page with the model that it was made of."""
    from dataclasses import replace

    return replace(page, source=source)
