"""Counters that hardly move, do not move, or move alike: compared without a crash, judged without a guess."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import column, rounds_of, run_of

from dbdyno.cells.collection import Collection
from dbdyno.cells.diff import diff_page
from dbdyno.cells.intervals import intervals_of
from dbdyno.judge.cells_page import Recording, compare_page
from dbdyno.judge.cells_report import report_page
from dbdyno.stats.ratios import compare_ratios, ratio_of

DIFFERENT = ("worse", "better", "more", "less")
ITEMS = (
    ("CD_IO_RQ_R_SM", "CD_00_cel01"),
    ("CD_IO_TM_R_SM", "CD_00_cel01"),
    ("CD_IO_ERRS", "CD_00_cel01"),
    ("FL_FLASH_FIRST", "FLASHLOG"),
    ("FL_DISK_FIRST", "FLASHLOG"),
    ("FL_IO_W", "FLASHLOG"),
)
CELLS = ("cel01", "cel02")
GROWTH = st.one_of(st.just(0), st.integers(0, 2), st.sampled_from([0, 0, 0, 1, 10**9, 2**53]))


@st.composite
def recordings_of(draw: st.DrawFn) -> list[Collection]:
    """Draw a recording of any shape: its length, which counters exist, and their growth, which is mostly zero."""
    minutes = draw(st.integers(2, 14))
    shown = draw(st.lists(st.sampled_from(ITEMS), min_size=1, unique=True))
    grown = {
        (cell, item): draw(st.lists(GROWTH, min_size=minutes, max_size=minutes)) for cell in CELLS for item in shown
    }

    def counters(cell: str, minute: int) -> dict[tuple[str, str], float]:
        return {item: float(sum(grown[cell, item][: minute + 1])) for item in shown}

    return rounds_of(minutes, counters, CELLS)


def side(name: str, rounds: list[Collection]) -> Recording:
    return Recording(name, intervals_of(rounds), {}, {})


@pytest.mark.soak
@settings(max_examples=60, deadline=None)
@given(recordings_of(), recordings_of())
def test_any_two_recordings_are_compared_however_little_moved(one, other):
    page = compare_page(side("before", one), side("after", other), everything=True)
    assert page["verdict"]["word"]
    for row in page["rows"]:
        assert row["p"] is None or math.isnan(row["p"]) or 0 <= row["p"] <= 1


@settings(max_examples=40, deadline=None)
@given(recordings_of())
def test_a_recording_does_not_differ_from_itself(rounds):
    page = compare_page(side("before", rounds), side("after", rounds))
    assert [row for row in page["rows"] if row["decision"] in DIFFERENT] == []


def one_read(minutes: int, at: int) -> list[Collection]:
    """Return rounds in which a disk has a single read."""
    return rounds_of(
        minutes,
        lambda _, minute: {
            ("CD_IO_RQ_R_SM", "CD_00_cel01"): float(minute >= at),
            ("CD_IO_TM_R_SM", "CD_00_cel01"): 700.0 * (minute >= at),
        },
        CELLS,
    )


def test_a_disk_with_one_read_is_no_division_by_zero():
    page = compare_page(side("before", one_read(10, 3)), side("after", one_read(12, 5)))
    told = {row["metric"]: row["decision"] for row in page["rows"] if not row["cell"]}
    assert told["CD_IO_TM_R_SM_RQ"] == "cannot tell"


def test_equal_ratios_without_any_spread_have_no_p():
    burst = ratio_of([0, 0, 0, 0, 0, 5], [0, 0, 0, 0, 0, 1])
    assert math.isnan(compare_ratios(burst, burst).p)


@settings(max_examples=60, deadline=None)
@given(recordings_of(), st.sampled_from(["cell", "object", "both"]))
def test_the_difference_of_any_two_rounds_has_a_page(rounds, by):
    page = diff_page(rounds[0], rounds[-1], by=by)
    assert page["page"] == "diff"


@pytest.mark.parametrize("growth", [0.0, 1.0, 2.0**53])
def test_the_report_of_counters_that_all_grow_alike(tmp_path, growth):
    rounds = rounds_of(6, lambda _, minute: dict.fromkeys(ITEMS, growth * minute), CELLS)
    assert report_page(run_of(tmp_path / "rec", rounds, CELLS))["verdict"]["word"]


def test_a_recording_of_one_collection_compares_as_too_short():
    only = Collection([column("cel01", {ITEMS[0]: 1.0}, 0), column("cel02", {ITEMS[0]: 1.0}, 0)])
    later = Collection([column("cel01", {ITEMS[0]: 1.0}, 1), column("cel02", {ITEMS[0]: 1.0}, 1)])
    page = compare_page(side("before", [only, later]), side("after", [only, later]))
    assert page["verdict"]["word"] == "cannot tell"
    page = compare_page(side("before", [only, only]), side("after", [only, only]))
    assert page["facts"]["last"]["note"].startswith("no interval that counts, "), "it was '0 × nan s'"
