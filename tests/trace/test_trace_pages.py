"""The pages in a real browser, the figures against Vega-Lite's schema, and hostile text."""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_evidence import Evidence, order_entry
from trace_profile_json import line, profile

import chromium
import drawn
from dbdyno.base.json_types import JsonObject
from dbdyno.report import figures
from dbdyno.report.html import render_html, write_html
from dbdyno.report.terminal import render_text, rows
from dbdyno.trace import report, statements, timeline, tree, waits
from dbdyno.trace.profile import Request, page_of
from dbdyno.trace.source import open_traces
from soaked import first
from vega_lite import accepted

HOSTILE = "</script><img src=x onerror=alert(1)>'\"--&amp;{{7*7}}\u2028\u202e\x1b[31m\x00${x}`'];//"
PAGES = ("profile", "sql", "events", "waits", "tree", "timeline", "report")


def pages_of(folder: Path) -> dict[str, JsonObject]:
    with open_traces([str(folder)]) as opened:
        return {
            "profile": page_of(profile(), Request(), ["a.trc"]),
            "sql": statements.statements_page(opened, statements.Request(top=0)),
            "events": waits.waits_page(opened, waits.Request()),
            "waits": waits.waits_page(opened, waits.Request(events=("*",), longest=400)),
            "tree": tree.tree_page(opened, tree.Request()),
            "timeline": timeline.timeline_page(opened),
            "report": report.report_of_profile(
                page_of(profile(), Request(), ["a.trc"]), opened, report.Request(share=0)
            ),
        }


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, JsonObject]:
    return pages_of(order_entry(3, 60).write(tmp_path_factory.mktemp("m") / "run"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> dict[str, JsonObject]:
    made = Evidence()
    made.statement(HOSTILE, HOSTILE)
    inner = made.wait(HOSTILE, HOSTILE, end_us=90, elapsed_us=50, statement=HOSTILE, parameters=HOSTILE)
    low = made.call("fetch", HOSTILE, end_us=95, elapsed_us=60, depth=1)
    outer = made.call("exec", HOSTILE, end_us=100, elapsed_us=80)
    made.adopt(low, inner)
    made.adopt(outer, low)
    for at in range(20):
        made.wait(HOSTILE, "commit", end_us=200 + at, elapsed_us=at)
    made.rows["plans"].append(
        {"file": 0, "line": 1, "cursor": 7, "statement": HOSTILE, "id": 1, "parent": 0, "operation": HOSTILE}
    )
    models = pages_of(made.write(tmp_path_factory.mktemp("h") / "run"))
    bad = line(HOSTILE, "wait", HOSTILE, [5, 900])
    models["profile"] = page_of(profile(rows=[bad | {"share": 1.0}]), Request(), [HOSTILE])
    for model in models.values():
        model["facts"]["title"] = HOSTILE
        model["warnings"] = [{"code": HOSTILE, "text": HOSTILE, "next": HOSTILE}]
    return models


@chromium.needed
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("which", first("hostile", "models"))
def test_a_page_opens_quietly_and_fits(browser, request, tmp_path, which, name):
    chromium.opened_quietly(browser, write_html(request.getfixturevalue(which)[name], tmp_path / "page.html"))


@chromium.needed
@pytest.mark.parametrize("name", PAGES)
def test_nothing_on_a_page_collides_is_clipped_or_torn(browser, models, tmp_path, name: str):
    assert drawn.faults(browser, write_html(models[name], tmp_path / "page.html")) == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("which", ["models", "hostile"])
def test_text_and_rows_take_every_model(request, which: str, name: str):
    model = request.getfixturevalue(which)[name]
    for width in (40, 80, 120):
        text = render_text(model, width=width, color=False, skew=True)
        assert "\x1b" not in text and "\u202e" not in text and "\x00" not in text
    found = rows(model)
    assert all(list(row) == list(found[0]) for row in found)
    assert "<img" not in render_html(model)


@pytest.mark.parametrize("look", [figures.WIDE, figures.NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("figure", figures.TRACE, ids=lambda figure: figure.name)
@pytest.mark.parametrize("which", ["models", "hostile"])
def test_a_figure_holds_to_the_schema(request, which: str, figure: figures.Figure, look):
    drawn = [
        chart for model in request.getfixturevalue(which).values() if (chart := figure.draw(model, look)) is not None
    ]
    for chart in drawn:
        accepted(chart)
    assert drawn or which == "hostile"
