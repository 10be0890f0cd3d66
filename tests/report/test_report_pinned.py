"""The text of each kind of page does not change: it is compared with files in this folder.

`DBDYNO_PIN=1 pytest tests/report/test_report_pinned.py` rewrites the files; review the diff.
"""

from __future__ import annotations

import json
import os
import re

import pytest
from pinned_pages import HERE, PAGES, words

from dbdyno.report.flat import rows
from dbdyno.report.html import render_html
from dbdyno.report.terminal import render_text


def rounded(text: str) -> str:
    """Round numbers to 12 digits, because the last digits depend on the processor's vector width."""
    return re.sub(r"\d+\.\d{9,}", lambda number: f"{float(number[0]):.12g}", text)


@pytest.mark.drawn(drawn=False)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_what_it_said(name: str):
    model = PAGES[name]()
    flat = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows(model)[:40])
    found = f"{render_text(model, width=100, color=False)}\n==== html\n{words(render_html(model))}\n==== rows\n{flat}"
    kept = HERE / f"{name.replace(' ', '-')}.txt"
    if os.environ.get("DBDYNO_PIN"):
        kept.write_text(found)
    assert rounded(found) == rounded(kept.read_text())
