"""The output of CellCLI in every form: live, through dcli, archived, pasted."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from dbdyno.cells.listing import read_text
from dbdyno.cells.numbers import cellcli_text, last_digit_value, number_and_unit, size_bytes
from fresh_dice import fresh_dice


def test_a_row_as_the_cell_prints_it():
    (row,) = read_text("\t FC_IO_RQ_R         \t FLASHCACHE\t 1,325,800,847 IO requests\n").readings
    assert (row.name, row.object, row.value) == ("FC_IO_RQ_R", "FLASHCACHE", 1_325_800_847)
    assert (row.unit, row.text, row.cell) == ("IO requests", "1,325,800,847", "")


def test_dcli_names_the_cell_and_strips_the_line():
    (row,) = read_text("cel01: CD_IO_BY_R_LG_SEC  \t CD_00_cel01\t 10.797 MB/sec\n").readings
    assert (row.cell, row.object, row.value, row.unit) == ("cel01", "CD_00_cel01", 10.797, "MB/sec")


def test_pasted_text_has_blanks_for_tabs():
    (row,) = read_text("   GD_IO_RQ_W_SM   DATA_CD_00_cel01   2,930 IO requests  ").readings
    assert (row.object, row.value, row.unit) == ("DATA_CD_00_cel01", 2930, "IO requests")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("FL_BY_KEEP FLASHLOG 0", ("FLASHLOG", 0.0, "")),
        ("DB_IO_LOAD ASM 19,885", ("ASM", 19885.0, "")),
        ("CD_IO_TM_W_SM_RQ CD_01 205.5 us/request", ("CD_01", 205.5, "us/request")),
        ("CL_TEMP cel01 48.0 C", ("cel01", 48.0, "C")),
        ("DB_IO_UTIL_SM ORCL 100 %", ("ORCL", 100.0, "%")),
        ("CD_IO_ERRS_MIN CD_01 0.0 /min", ("CD_01", 0.0, "/min")),
        ("CG_IO_RQ_LG ORCL.OTHER_GROUPS 7 IO requests", ("ORCL.OTHER_GROUPS", 7.0, "IO requests")),
        ("N_MB_SENT db01.example.com 1,024 MB", ("db01.example.com", 1024.0, "MB")),
        ("FL_IO_W 12 IO requests", ("", 12.0, "IO requests")),
        ("CD_IO_RQ_R_SM 8.55164e+06 IO requests", ("", 8551640.0, "IO requests")),
    ],
)
def test_units_objects_and_numbers_of_every_form(line: str, expected: tuple[str, float, str]):
    (row,) = read_text(line).readings
    assert (row.object, row.value, row.unit) == expected


def test_history_brings_the_time_of_collection():
    (row,) = read_text("CD_IO_LOAD\t CD_00\t 1.5\t 2012-10-12T14:33:45-04:00\n").readings
    assert row.at_ns == 1_350_066_825 * 10**9
    (row,) = read_text("FL_IO_W FLASHLOG 9 IO requests 2012-10-12T14:33:45-04:00").readings
    assert (row.unit, row.at_ns) == ("IO requests", 1_350_066_825 * 10**9)


def test_detail_with_continuations_under_a_hanging_indent():
    text = (
        "\t name:              \t exa1cel01_IORMPLAN\n"
        "\t catPlan:           \t \n"
        "\t dbPlan:            \t name=ORCL,share=10\n"
        "\t                    \t name=TEST,share=4\n"
        "\t status:            \t active\n"
    )
    (plan,) = read_text(text).details
    assert plan["dbPlan"] == "name=ORCL,share=10\nname=TEST,share=4"
    assert (plan["catPlan"], plan["status"]) == ("", "active")


def test_detail_through_dcli_loses_the_indent_but_not_the_continuation():
    text = "cel01: name: cel01_FLASHCACHE\ncel01: size: 365.25G\ncel01: FD_00_cel01\ncel02: name: b\n"
    one, two = read_text(text).details
    assert one == {"": "cel01", "name": "cel01_FLASHCACHE", "size": "365.25G\nFD_00_cel01"}
    assert two == {"": "cel02", "name": "b"}


def test_an_error_is_no_value_and_no_unread_line():
    found = read_text("cel01: CELL-01504: Invalid command syntax.\nCELL-02026: No limit.\n")
    assert [(e.cell, e.code, e.message) for e in found.errors] == [
        ("cel01", "CELL-01504", "Invalid command syntax."),
        ("", "CELL-02026", "No limit."),
    ]
    assert not found.unread


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("FC_IO_RQ_R FLASHCACHE", "a metric without a value that can be read"),
        ("FC_IO_RQ_R\t FLASHCACHE\t 1,3", ""),
        ("ssh: connect to host cel09 port 22: Connection refused", "neither"),
        ("\x00\x01garbage", "neither"),
    ],
)
def test_what_is_not_understood_is_told_with_its_line(text: str, why: str):
    found = read_text(f"FL_IO_W 1 IO requests\n{text}\n")
    if why:
        assert found.unread[0].line == 2
        assert found.unread[0].why.startswith(why)


def words(texts: Iterable[str]) -> list[str]:
    return [word for text in texts for word in re.split(r"[\s:]+", text) if word]


def test_nothing_is_dropped_whatever_the_text():
    """Each line is a value, an error or unread, or all its words stand in a detail."""
    dice = fresh_dice()
    letters = "FC_IO_RQ R\t:,.0123456789-eEAZ%/\n\r cel01CELL-"
    for _ in range(2000):
        text = "".join(dice.choice(letters) for _ in range(dice.randrange(120)))
        found = read_text(text)
        told = {one.line for one in (*found.readings, *found.errors, *found.unread)}
        kept = {word for block in found.details for pair in block.items() for word in words(pair)}
        for number, line in enumerate(text.split("\n"), 1):
            assert number in told or kept.issuperset(words([line])), (text, number)


def test_numbers_keep_their_printed_digits():
    assert number_and_unit("2,844 ms/request") == (2844.0, "ms/request")
    assert number_and_unit("none") is None
    assert (last_digit_value("0.062 MB"), last_digit_value("2,844 ms/request"), last_digit_value("8.55164e+06")) == (
        0.001,
        1,
        10,
    )
    assert size_bytes("365.25G") == round(365.25 * 2**30)
    assert size_bytes("5.82122802734375T") == round(5.82122802734375 * 2**40)
    for value, unit, text in [
        (10.797, "MB/sec", "10.797 MB/sec"),
        (106126.4, "MB", "106,126 MB"),
        (2930, "IO requests", "2,930 IO requests"),
        (48, "C", "48.0 C"),
        (19885, "", "19,885"),
    ]:
        assert cellcli_text(value, unit) == text
