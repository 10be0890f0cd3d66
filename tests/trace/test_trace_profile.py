"""The profile's page: totals add up, signs are kept, and every line has a chart of its skew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from trace_profile_json import line, profile

from dbdyno.base.errors import TraceError
from dbdyno.cli.main import cli
from dbdyno.report.html import render_html
from dbdyno.report.terminal import render_text, rows
from dbdyno.trace.profile import Request, page_of


def page(request: Request | None = None, **more) -> dict:
    return page_of(profile(**more), request or Request(), ["a.trc", "b.trc"])


def microseconds(cell: str) -> int:
    return round(float(cell.replace("−", "-").replace(" ", "")) * 1_000_000)


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_the_column_of_seconds_adds_up_to_the_total(width: int):
    text = render_text(page(), width=width, color=False)
    part = text.split("Database calls")[0]
    cells = [word for word in part.split() if re.fullmatch(r"−?\d+\.\d{6}", word)]
    *parts, total = [microseconds(cell) for cell in cells]
    assert len(parts) == 6
    assert sum(parts) == total


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_name_is_broken_at_80(width: int):
    text = render_text(page(), width=width, color=False, skew=True)
    assert max(map(len, text.splitlines())) <= width
    assert "SQL*Net message from client" in text


def test_a_negative_rest_keeps_its_sign():
    text = render_text(page(), width=100, color=False)
    assert "−0.000037" in text


def test_the_skew_is_where_the_time_is():
    (row,) = [r for r in render_text(page(), width=120, color=False).splitlines() if r.startswith("log file sync")]
    assert row.endswith("··▃█·"), "1 us, 10 us: none; 100 us: 1 ms of waits; 1 ms: 3.07 ms"


def test_the_full_skew_table_has_a_line_per_decade():
    text = render_text(page(), width=100, color=False, skew=True)
    part = text.split("\nlog file sync\n")[1]
    assert part.splitlines()[1].startswith("100 µs to 1 ms")


def test_statements_have_their_text_and_long_ones_fold():
    text = "select " + ", ".join(f"column_{n}" for n in range(200)) + " from t"
    made = line("log file sync", "wait", "commit", [5], {"statement": "6v48b7j2tc4a0", "event": "x"})
    model = page(
        Request(("statement", "event")),
        rows=[{**made, "share": 1.0}],
        statements={"6v48b7j2tc4a0": text},
        by=["statement", "event"],
    )
    shown = render_text(model, width=80, color=False)
    assert "6v48b7j2tc4a0" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_what_top_left_out_is_told():
    model = page(Request(top=2), rows=profile()["rows"][:2], left_out_by_top={"count": 9, "total_ns": 1_000_000})
    assert "the rest" in render_text(model, width=100, color=False)


def test_a_trace_without_waits_is_warned_of():
    cpu = [row for row in profile()["rows"] if row["what"] != "wait"]
    model = page(rows=cpu)
    assert "20 to 50 %" in " ".join(render_text(model, width=100, color=False).split())


def test_what_was_not_read_is_told_with_the_next_step():
    model = page(unread={"torn line": 3})
    text = render_text(model, width=100, color=False)
    assert "3 pieces were not read." in text
    assert "dbdyno trace check" in text


def test_flat_rows_hold_raw_numbers():
    found = rows(page())
    assert found[0]["event"] == "SQL*Net message from client"
    assert sum(row["total_ns"] for row in found) == profile()["elapsed_ns"]


def test_the_page_has_a_table_a_figure_and_no_style_attribute():
    html = render_html(page())
    assert html.count("<svg") > 8
    assert "The skew of each line as a table" in html
    assert " style=" not in html


def test_an_unknown_dimension_names_those_there_are():
    done = CliRunner().invoke(
        cli, ["trace", "profile", str(Path(__file__).parents[2] / "examples" / "orders.trc"), "--by", "evnt"]
    )
    assert isinstance(done.exception, TraceError)
    assert "'evnt' is not a name" in str(done.exception) and "statement" in str(done.exception)


def test_nothing_read_is_an_error_with_the_first_refusal():
    refused = [{"path": "a.trc", "sentence": "is an optimizer trace (10053)"}]
    with pytest.raises(TraceError, match=r"a\.trc: is an optimizer trace"):
        page_of(profile(files=0, refused=refused), Request(), ["a.trc"])
