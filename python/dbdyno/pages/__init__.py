"""Builders of pages from models: one file per kind of page, each building a `dbdyno.page.Page`.

Builders do not judge or draw: they select, name and order what the model contains; `dbdyno.report` renders the result.
To add a kind of page, add a file here with a function `page(model)`, and a row in `BUILDERS`.
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
    "rehearsal": "rehearsal",
    "cuts": "cuts",
    "bisect": "bisect",
    "query": "query",
}
"""Module that builds each kind of page; all kinds without an entry are runs."""


def page_of(page: Page | Mapping[str, Any], **options: bool) -> Page:
    """Return the page built from a model; a page is returned unchanged.

    Raises:
        ReportError: the model has another schema or an unknown kind, or is damaged.
    """
    if isinstance(page, Page):
        return page
    safe = reading.read(page)
    builder = import_module(f"dbdyno.pages.{BUILDERS.get(str(safe['kind']), 'run')}")
    made: Page = builder.page(safe, **options)
    return with_source(made, page)


def with_source(page: Page, source: Mapping[str, Any]) -> Page:
    """Return the page with `source` set to the model that it was built from."""
    from dataclasses import replace

    return replace(page, source=source)
