"""Each kind of page says what it said: its text and its words are held to files beside this one.

`DBDYNO_PIN=1 pytest tests/report/test_report_pinned.py` writes them anew; read the difference.
"""

from __future__ import annotations

import json
import os

import pytest
from pinned_pages import HERE, PAGES, words

from dbdyno.report.html import render_html


def text_of(model: dict) -> str:
    from importlib import import_module

    own = model["kind"] in ("trace", "snapshot", "model", "cells")
    module = import_module(f"dbdyno.report.{model['kind']}" if own else "dbdyno.report.terminal")
    return module.render_text(model, width=100, color=False)


def rows_of(model: dict) -> list[dict]:
    from importlib import import_module

    own = model["kind"] in ("trace", "snapshot", "model", "cells")
    module = import_module(f"dbdyno.report.{model['kind']}" if own else "dbdyno.report.flat")
    return module.rows(model)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_what_it_said(name: str):
    model = PAGES[name]()
    flat = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows_of(model)[:40])
    found = f"{text_of(model)}\n==== html\n{words(render_html(model))}\n==== rows\n{flat}"
    kept = HERE / f"{name.replace(' ', '-')}.txt"
    if os.environ.get("DBDYNO_PIN"):
        kept.write_text(found)
    assert found == kept.read_text()
