"""The page of a rehearsal, from a synthetic model: differing answers, answers not compared, the source of values."""

from __future__ import annotations

from typing import Any

import pytest

from dbdyno.base.json_types import JsonObject
from dbdyno.pages.rehearsal import page
from dbdyno.report.html import render_html


def model(**row: Any) -> dict[str, Any]:
    statement = {"number": 1, "text": "select 1", "calls": 7, "share": 1.0, "decision": "same", "added_ns": 0.0, **row}
    return {
        "schema": 1,
        "kind": "rehearsal",
        "statements": [statement],
        "left_out": [],
        "verdict": {},
        "threshold": 0.1,
    }


def titles(found: JsonObject) -> list[str]:
    return [part.title for section in page(found).sections for part in (section, *section.parts)]


@pytest.mark.parametrize(
    ("difference", "rows", "says"),
    [
        ("order", (3, 3), "the same rows in another order"),
        ("columns", (3, 3), "a different number of columns"),
        ("values", (3, 3), "the same number of rows, with other values"),
        ("rows", (3, 4), "4 rows instead of 3"),
    ],
)
def test_a_page_says_how_answers_differ(difference: str, rows: tuple[int, int], says: str) -> None:
    found = model(decision="differs", difference=difference, rows=dict(zip(("old", "new"), rows, strict=True)))
    assert f"Statement 1: {says}" in titles(found)


def test_a_page_lists_the_answers_that_were_not_compared() -> None:
    assert "Answers not compared (1)" in titles(model(answers="not compared: LIMIT without ORDER BY"))
    assert not [title for title in titles(model(answers="")) if title.startswith("Answers not")]


@pytest.mark.parametrize(
    ("sets", "origin", "says"),
    [(5, "captured", "5 captured"), (3, "data", "3 from the data"), (1, "none", "no parameters"), (0, None, "")],
)
def test_a_page_says_where_the_values_of_a_statement_come_from(sets: int, origin: str | None, says: str) -> None:
    (row, *_) = page(model(sets=sets, origin=origin)).sections[0].tables[0].rows
    assert row.cells["values"] == says


def test_the_replay_follows_the_statements() -> None:
    rows = [{"side": side, "speed": "1", "turns": 3, "kept": 3} for side in ("old", "new")]
    found = model(decision="slower", ratio=2.0, low=1.9, high=2.1) | {"replay": {"speeds": rows, "sentences": []}}
    assert [section.title for section in page(found).sections][1:3] == ["Slower statements (1)", "The load as it was"]


def test_the_changed_nodes_of_both_plans_are_marked_and_no_others() -> None:
    same = {"depth": 0, "title": "Aggregate", "changed": False}
    plans = {
        side: [same, {"depth": 1, "title": title, "changed": True}]
        for side, title in (("old", "Index Scan using a"), ("new", "Seq Scan on t"))
    }
    html = render_html(model(decision="slower", ratio=2.0, low=1.9, high=2.1, plans=plans))
    plan = html[html.index(' plans"') :]
    assert [mark in plan for mark in ("<b>", "Aggregate</b>")] == [True, False]
    assert '<th scope="row" class="even">' in plan and "Index Scan using a</b>" in plan
    assert "Seq Scan on t</b>" in plan
