"""Rendered pages of models, each rendered once per test run, because many tests in several processes use the same page.

html = rendered.page(report_models.experiment())
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from dbdyno.base.json_types import JsonObject
from dbdyno.report.html import render_html

PLACE: list[Path] = []
"""Folder of the pages, which a fixture sets (conftest.py)."""


def page(model: JsonObject) -> str:
    """Return the page of a model, rendered at most once, because the page depends on the model only."""
    path = PLACE[0] / hashlib.sha256(json.dumps(model).encode()).hexdigest()
    if not path.exists():
        aside = path.with_suffix(f".{os.getpid()}")
        aside.write_bytes(render_html(model).encode())
        aside.rename(path)
    return path.read_bytes().decode()


def written(model: JsonObject, path: Path) -> Path:
    """Write the page to a file for a browser; return its path."""
    path.write_text(page(model), encoding="utf-8")
    return path
