"""The main results on a terminal, and the flat rows."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
import report_models
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.page import Column, Head, Page, Row, Section, Table
from dbdyno.report import characters
from dbdyno.report.terminal import render_text, rows

ANSI = re.compile(r"\x1b\[[\d;]*m")


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_every_model_fits_every_width(any_model, width):
    shown = render_text(any_model, width=width, color=False)
    assert shown.endswith("\n")
    assert all(len(line) <= width for line in shown.splitlines())
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", shown)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_number_is_broken_over_lines(width):
    """`compare snap:` showed a statement's identifier as -266349692370058022 and, below it, 8."""
    columns = tuple(
        Column(name, name, "code" if name == "identifier" else "text") for name in ("statement", "identifier")
    )
    more = tuple(Column(name, name) for name in ("measure", "decision", "first"))
    cells = {"statement": "update orders set amount = amount + 1", "identifier": "-2663496923700580228"}
    words = dict.fromkeys(("measure", "decision", "first"), "blocks that were hit a second in all of it")
    made = Table("", (*columns, *more), (Row({**cells, **words}),))
    text = render_text(Page(Head("t", "t"), (Section("s", "s", tables=(made,)),)), width=width, color=False)
    assert "-2663496923700580228" in text.split()


def test_the_essentials_are_there(experiment):
    shown = render_text(experiment, width=120, color=False)
    for expected in (
        "SLOWER  work_mem 4 MB is slower than work_mem 64 MB",
        "work_mem 64 MB (baseline)",
        "2 × error 40001",
        "+6.1 % to +7.4 %",
        "cannot tell",
        "20, needs 52 to 190",
        "●━",
        "next: Lower the rate",
        "2026-11-21T10-02-11Z-work-mem-7f3a",
    ):
        assert expected in shown
    assert "equal work" not in shown


def test_a_curve_has_its_bars(curve):
    shown = render_text(curve, width=80, color=False)
    assert "FOUND" in shown
    assert "64.0 KiB to 3.94 MiB, 32 bins" in shown
    assert "█" in shown


def test_colour_is_the_callers_choice_whatever_the_environment_says(monkeypatch, experiment):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "20")
    coloured = render_text(experiment, width=100, color=True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    plain = render_text(experiment, width=100, color=False)
    assert ANSI.search(coloured)
    assert not ANSI.search(plain)
    assert [line.rstrip() for line in ANSI.sub("", coloured).splitlines()] == plain.splitlines()


def test_markup_and_escapes_in_names_stay_words():
    model = report_models.experiment()
    model["arms"][1]["name"] = "[bold red]x[/]\x1b[2J:smile:"
    shown = render_text(model, width=120, color=False)
    assert "[bold red]x[/]\\x1b[2J:smile:" in shown


def test_rows_are_flat_and_of_one_shape(any_model):
    flat = rows(any_model)
    assert len({tuple(row) for row in flat}) <= 1
    json.dumps(flat, allow_nan=False)
    if flat:
        out = io.StringIO()
        writer = csv.DictWriter(out, flat[0])
        writer.writeheader()
        writer.writerows(flat)
        assert not any(isinstance(value, dict | list) for row in flat for value in row.values())


def test_rows_keep_the_numbers_as_they_are(experiment, curve):
    row = next(row for row in rows(experiment) if row["metric"] == "p50")
    given_ = next(row for row in experiment["metrics"] if row["metric"] == "p50")
    assert row["ratio"] == given_["ratio"]
    assert (row["arm"], row["baseline"]) == ("work_mem 4 MB", "work_mem 64 MB")
    assert len(rows(curve)) == 32
    assert rows(curve)[0]["redo_bytes"] == 65_536


def test_an_interval_is_drawn_to_scale():
    assert characters.interval(1.0, None, None, 0.1, 5) == "··●··"
    assert characters.interval(1.1, 1.05, 1.5, 0.1, 9) == "····│·━━●"
    assert characters.interval(0.5, 0.4, 0.6, 0.1, 5) == "●·│··"


def test_a_line_of_blocks_goes_from_lowest_to_highest():
    assert characters.line([1, 2, None, 3]) == "▁▄ █"[:1] + "▅ █"[:1] + " █"
    assert characters.line([2, 2]) == "▄▄"
    assert characters.line([]) == ""


@given(st.lists(st.floats(0, 1e12), max_size=60), st.integers(1, 12))
def test_bars_have_the_height_asked_for_and_the_highest_reaches_the_top(values, height):
    drawn = characters.bars(values, height)
    if not values or max(values) == 0:
        assert drawn == []
        return
    assert len(drawn) == height
    assert "█" in drawn[0]
    assert all(len(line) <= len(values) for line in drawn)
