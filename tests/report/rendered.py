"""Pages of models, each rendered once in a run of tests: many tests, in several processes, look at the same page.

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
"""The folder of the pages, which a fixture names (conftest.py)."""


def page(model: JsonObject) -> str:
    """The page of a model; what `render_html` makes of it is a function of the model alone."""
    path = PLACE[0] / hashlib.sha256(json.dumps(model).encode()).hexdigest()
    if not path.exists():
        aside = path.with_suffix(f".{os.getpid()}")
        aside.write_bytes(render_html(model).encode())
        aside.rename(path)
    return path.read_bytes().decode()


def written(model: JsonObject, path: Path) -> Path:
    """The page as a file for a browser."""
    path.write_text(page(model), encoding="utf-8")
    return path
