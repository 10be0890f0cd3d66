"""The page of a rehearsal, on a made model: how answers differ, which were not compared, and where values come from."""

from __future__ import annotations

from typing import Any

import pytest

from dbdyno.pages.rehearsal import page


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


def titles(found: dict[str, Any]) -> list[str]:
    return [part.title for section in page(found).sections for part in (section, *section.parts)]


@pytest.mark.parametrize(
    ("difference", "rows", "says"),
    [
        ("order", (3, 3), "the same rows in another order"),
        ("columns", (3, 3), "another number of columns"),
        ("values", (3, 3), "the same number of other rows"),
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
