"""Tables on a terminal: numbers are right-aligned, and neither numbers nor names are broken."""

from __future__ import annotations

import pytest

from dbdyno.cli.output import Output, is_numeric, show_rows


@pytest.mark.parametrize(
    "values",
    [
        [1, 2.5],
        ["1,234,567", "0.5"],
        ["2.40625e-01", "0e+00"],
        ["–", "12"],
        ["", None, "3"],
        ["10 to 90.25", "7"],
        ["-3", "+4", "\N{MINUS SIGN}5"],
        ["12.5 %", "100%"],
    ],
)
def test_numbers_are_known_however_they_are_written(values: list[object]):
    assert is_numeric(values)


@pytest.mark.parametrize("values", [["FL_IO_W"], ["1", "cel01"], ["–", ""], [], ["2026-11-21"], ["1.2.3"], ["to"]])
def test_words_names_and_nothing_are_no_numbers(values: list[object]):
    assert not is_numeric(values)


def test_digits_stand_under_digits_and_nothing_is_cut_in_two(capsys: pytest.CaptureFixture[str]):
    rows = [
        {
            "metric": "FL_IO_W_SKIP_DISABLED_GD",
            **{f"c{at}": value for at in range(9)},
            "description": "a meaning of many words " * 6,
        }
        for value in ("2.406250000000001e-01", "5e+00")
    ]
    show_rows(rows, Output("table"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:2] == ["FL_IO_W_SKIP_DISABLED_GD", "2.406250000000001e-01"]
    below = next(line for line in lines[2:] if line.startswith("FL_IO"))
    end = lines[1].index("2.406250000000001e-01") + len("2.406250000000001e-01")
    assert below[:end].endswith(" 5e+00")
