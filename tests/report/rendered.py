"""Pages of models, each rendered once in a process: many tests look at the same page.

html = rendered.page(report_models.experiment())
"""

from __future__ import annotations

import json
from pathlib import Path

from dbdyno.base.json_types import JsonObject
from dbdyno.report.html import render_html

_PAGES: dict[str, str] = {}


def page(model: JsonObject) -> str:
    """The page of a model; what `render_html` makes of it is a function of the model alone."""
    key = json.dumps(model)
    if key not in _PAGES:
        _PAGES[key] = render_html(model)
    return _PAGES[key]


def written(model: JsonObject, path: Path) -> Path:
    """The page as a file for a browser."""
    path.write_text(page(model), encoding="utf-8")
    return path
