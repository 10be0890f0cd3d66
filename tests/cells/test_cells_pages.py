"""Pages of cells on the screen: nothing important is cut off, and lines use their whole panel."""

from __future__ import annotations

import random

import pytest
from made_recordings import Cells

from dbdyno.cells.show import age_words, show_page, table_rows, worst_of
from dbdyno.pages import page_of
from dbdyno.report.figures.cells_series import axis_ends

MANY = tuple(f"exa1cel{number:02}" for number in range(1, 15))


@pytest.mark.parametrize("cells", [2, 14])
def test_what_stands_for_all_comes_before_the_cells(cells: int):
    page = show_page(Cells(random.Random(1), names=MANY[:cells]).rounds(1)[-1])
    assert list(table_rows(page)[0])[:3] == ["metric", "all", "unit"]
    for section in page_of(page).sections:
        if not section.tables:
            continue
        names = [column.name for column in section.tables[0].columns]
        assert names.index("all") == 1
        if cells > 6:
            assert names.index("description") < names.index("c0")


def test_of_many_cells_stand_all_the_worst_and_the_chosen():
    page = show_page(Cells(random.Random(1), names=MANY).rounds(1)[-1])
    rows = table_rows(page, cells=("exa1cel03",))
    assert list(rows[0]) == ["metric", "all", "unit", "worst", "exa1cel03"]
    assert {row["worst"].split(":")[0] for row in rows} - {"–"} <= set(MANY)
    assert sum(row["worst"] != "–" for row in rows) > len(rows) / 3


def test_the_worst_is_the_most_of_a_latency_and_the_farthest_of_a_rate():
    values = {"a": 10.0, "b": 11.0, "c": 1.0}
    assert worst_of({"metric": "CD_IO_TM_R_SM_RQ", "rule": "weighted", "values": values}) == ("b", 11.0)
    assert worst_of({"metric": "FL_IO_W", "rule": "sum", "values": values}) == ("c", 1.0)
    assert worst_of({"metric": "FL_IO_W", "rule": "sum", "values": {"a": 1.0, "b": None}}) is None


def test_where_all_cells_say_the_same_none_is_the_worst():
    assert worst_of({"metric": "FL_ACTUAL_OUTLIERS", "rule": "sum", "values": {"a": 0.0, "b": 0.0, "c": 0.0}}) is None
    assert worst_of({"metric": "CD_IO_LOAD", "rule": "spread", "values": {"a": 2.0, "b": 2.0, "c": None}}) is None


def test_the_worst_of_an_efficiency_is_the_least():
    row = {"metric": "FL_EFFICIENCY_PERCENTAGE", "rule": "spread", "values": {"a": 100.0, "b": 61.0, "c": 100.0}}
    assert worst_of(row) == ("b", 61.0)


@pytest.mark.parametrize(
    ("age_s", "words"),
    [
        (12, "values are 12 s old; cells collect once a minute"),
        (7200, "cel01: its values are dated 2 h ago: its clock is behind ours, or it has stopped collecting"),
        (-7200, "cel01: its values are dated 2 h from now: its clock is ahead of ours"),
    ],
)
def test_the_age_of_a_value_is_told(age_s: float, words: str):
    assert age_words({"cells": [{"name": "cel01", "age_s": age_s}]}) == [words]


def test_a_rack_whose_clocks_are_off_is_one_sentence():
    ages = {f"cel{n:02}": -180.0 - 4 * n for n in range(1, 13)} | {"cel13": 20.0, "cel14": 7200.0}
    assert age_words({"cells": [{"name": name, "age_s": age} for name, age in ages.items()]}) == [
        "values are 20 s old; cells collect once a minute",
        "cel01, cel02, cel03 and 9 more: their values are dated 3.1 min to 3.8 min from now: "
        "their clocks are ahead of ours",
        "cel14: its values are dated 2 h ago: its clock is behind ours, or it has stopped collecting",
    ]


@pytest.mark.parametrize("values", [[1000.0, 1007.0, 1003.0], [98.0, 102.0, 100.0], [3.4, 4.1]])
def test_lines_that_lie_close_together_take_most_of_the_height(values: list[float]):
    low, high = axis_ends(values)
    assert low < min(values) < max(values) < high
    assert (max(values) - min(values)) / (high - low) > 0.7


@pytest.mark.parametrize("values", [[0.0, 5.0], [1.0, 9.0], [4.0, 4.0], [], [0.0]])
def test_other_lines_begin_at_zero(values: list[float]):
    low, high = axis_ends(values)
    assert low == 0 < high
