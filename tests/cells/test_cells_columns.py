"""Listings with a header: any order, delimiter and language that the header and the metrics' definitions settle."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.cells.columns import NO_TIME, NO_VALUE, TWICE, decimal_mark, header_of
from dbdyno.cells.documents import read_any
from dbdyno.cells.findings import AMBIGUOUS_NUMBER
from dbdyno.cli.main import cli

AT = 1_767_603_600 * 10**9  # 2026-01-05 09:00 UTC
HISTORY = """\
Cell;metricType;DateTime;name;objectname;value;unit
cel01;Cumulative;2026-01-05T10:00:00+01:00;FL_IO_W;FLASHLOG;1,234;IO requests
cel02;Instantaneous;2026-01-05T10:00:00+01:00;CL_CPUT;cel02;12.5;%
"""
ALIGNED = """\
time                       cell   name     object    value
2026-01-05T10:00:00+01:00  cel01  FL_IO_W  FLASHLOG  1,234 IO requests
2026-01-05T10:00:00+01:00  cel02  CL_CPUT  cel02     12.5 %
"""


@pytest.mark.parametrize("text", [HISTORY, ALIGNED, HISTORY.replace(";", "\t"), HISTORY.replace(";", " | ")])
def test_a_header_names_the_columns_in_any_order(text: str):
    found = read_any(text)
    assert [row[:5] for row in found.readings] == [
        ("cel01", "FL_IO_W", "FLASHLOG", 1234.0, "IO requests"),
        ("cel02", "CL_CPUT", "cel02", 12.5, "%"),
    ]
    assert [row.at_ns for row in found.readings] == [AT, AT]
    assert [row.line for row in found.readings] == [2, 3]
    assert not found.unread


ROWS = [
    ("cel01", "FL_IO_W", "FLASHLOG", 1234.0, "IO requests"),
    ("cel02", "GD_IO_BY_R_LG", "DATA_CD_00_cel02", 1047.5, "MB"),
    ("cel02", "CD_IO_TM_R_SM_RQ", "CD_00_cel02", 205.25, "us/request"),
]
NAMES = {"cell": "Cell", "time": "collectionTime", "name": "name", "object": "metricObjectName", "value": "metricValue"}


@settings(max_examples=150, deadline=None)
@given(
    st.permutations([*NAMES, "unit", "type"]),
    st.sampled_from([";", ",", "\t", "|"]),
    st.sampled_from([".", ","]),
    st.booleans(),
)
def test_every_order_delimiter_and_decimal_reads_back_equal(order: list[str], delimiter: str, mark: str, apart: bool):
    """`apart`: the unit is in a column of its own."""
    order = [one for one in order if apart or one != "unit"]
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow([{**NAMES, "unit": "unit", "type": "metricType"}[one] for one in order])
    for cell, name, item, value, unit in ROWS:
        number = f"{value:,.2f}".translate(str.maketrans(",.", ".," if mark == "," else ",."))
        fields = {"cell": cell, "time": "2026-01-05T09:00:00Z", "name": name, "object": item, "type": "Rate"}
        fields |= {"value": number if apart else f"{number} {unit}", "unit": unit}
        writer.writerow([fields[one] for one in order])
    found = read_any(out.getvalue())
    assert [row[:5] for row in found.readings] == ROWS, found
    assert {row.at_ns for row in found.readings} == {AT}


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_any_text_below_a_header_is_read_or_told(text: str):
    found = read_any(f"cell;name;value\n{text}")
    assert len(found.readings) + len(found.unread) + len(found.errors) <= text.count("\n") + 2


def test_the_unit_of_another_language_is_that_of_the_metrics_definition():
    [row] = read_any("name;objectname;value;unit\nFL_IO_W;FLASHLOG;1234;Запросы ввода-вывода\n").readings
    assert (row.value, row.unit) == (1234.0, "IO requests")
    found = read_any("name;objectname;value;unit\nXY_NEW;FLASHLOG;1234;Запросы\n")
    assert not found.readings and "unknown metric" in found.unread[0].why


def test_a_unit_in_another_script_behind_a_number_without_a_header():
    found = read_any("FL_IO_W\t FLASHLOG\t 1,234 IO 请求\nGD_IO_BY_R_LG_SEC\t DATA_CD_00_cel01\t 10.797 MB/秒\n")
    assert [(row.value, row.unit) for row in found.readings] == [(1234.0, "IO requests"), (10.797, "MB/sec")]
    assert not found.unread


@pytest.mark.parametrize(
    ("values", "mark"),
    [
        (["1,234", "1,234,567"], "."),
        (["1.234,5", "7"], ","),
        (["12.5"], "."),
        (["12,5", "1.234"], ","),
        (["1 325,8"], ","),
        (["0.125"], "."),
        (["1,234"], ""),
        (["12.5", "12,5"], "?"),
        (["7"], ""),
    ],
)
def test_the_decimal_separator_is_learnt_from_all_numbers_together(values: list[str], mark: str):
    assert decimal_mark(values) == mark


def test_a_number_that_nothing_settles_is_taken_of_a_count_and_told_of_others():
    found = read_any("name;objectname;value\nFL_IO_W;FLASHLOG;1,234\nGD_IO_BY_R_LG;DATA_CD_00;1,234\n")
    assert [(row.name, row.value) for row in found.readings] == [("FL_IO_W", 1234.0)]
    assert [(one.line, one.why) for one in found.unread] == [(3, AMBIGUOUS_NUMBER)]


def test_where_numbers_contradict_each_other_only_whole_ones_are_taken():
    text = "name;objectname;value\nGD_IO_BY_R_LG;a;12.5\nGD_IO_BY_R_LG;b;12,5\nGD_IO_BY_R_LG;c;7\n"
    found = read_any(text)
    assert [(row.object, row.value) for row in found.readings] == [("c", 7.0)]
    assert [one.line for one in found.unread] == [2, 3]


def test_damaged_rows_are_told_with_their_line_and_the_rest_is_read():
    found = read_any(HISTORY + "cel01;Rate;yesterday;FL_IO_W;FLASHLOG;1;IO requests\ncel01;;;\n")
    assert len(found.readings) == 2
    assert [(one.line, one.why) for one in found.unread] == [(4, NO_TIME), (5, NO_VALUE)]


def test_a_header_that_names_a_column_twice_is_told():
    found = read_any("name;metric;value\nFL_IO_W;FL_IO_W;1\n")
    assert not found.readings and [(one.line, one.why) for one in found.unread] == [(1, TWICE)]


@pytest.mark.parametrize("line", ["name: CD_00", "list metriccurrent attributes name, metricValue", "value", "a;b;c"])
def test_other_lines_are_no_headers(line: str):
    assert header_of(line) is None


@pytest.mark.parametrize(
    "typed",
    [
        '"list metrichistory attributes name, metricObjectName, metricValue"',
        "dcli -l root -g cells 'cellcli -e list metriccurrent'",
        "list metriccurrent attributes name,metricObjectName,metricValue",
        "`cellcli -e list metriccurrent`",
    ],
)
def test_a_pasted_command_costs_no_line(typed: str):
    found = read_any(f"{typed}\nFL_IO_W\t FLASHLOG\t 5 IO requests\n")
    assert [row.value for row in found.readings] == [5.0]
    assert not found.unread


def test_a_day_without_a_zone_is_taken_as_utc_and_may_stand_in_two_columns():
    [row] = read_any("date,time,name,value\n2026-01-05,09:00:00,FL_IO_W,7\n").readings
    assert row.at_ns == AT
    [row] = read_any("time cell name value\n2026-01-05 09:00:00 cel01 FL_IO_W 7 IO requests\n").readings
    assert (row.at_ns, row.cell) == (AT, "cel01")


def test_the_commands_read_a_file_of_history(tmp_path: Path):
    (tmp_path / "history.csv").write_text(HISTORY)
    said = CliRunner().invoke(cli, ["cells", "import", str(tmp_path / "history.csv"), "--out", str(tmp_path / "run")])
    assert said.exit_code == 0, said.output
    assert "2 values in 1 round(s)" in said.output
