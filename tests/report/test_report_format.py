"""Numbers and external text as a reader sees them."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.page import Column, Row
from dbdyno.pages import format as fmt
from dbdyno.report.cell_text import value_text

FINITE = st.floats(allow_nan=False, allow_infinity=False)
UNITS_NS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}
UNITS_B = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40, "PiB": 2.0**50}


def spaced(shown: str) -> str:
    return shown.replace(fmt.THIN, " ")


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (0, "0 ns"),
        (1, "1 ns"),
        (999, "999 ns"),
        (999.6, "1.00 µs"),
        (118_250, "118 µs"),
        (999_600, "1.00 ms"),
        (2_050_000, "2.05 ms"),
        (1_234_000_000, "1.23 s"),
        (-5_000_000, "−5.00 ms"),
        (3_600_000_000_000, "3600 s"),
        (36_000_000_000_000, "36 000 s"),
        (0.25, "0.250 ns"),
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "–"),
        ("12", "–"),
        (True, "–"),
    ],
)
def test_durations_take_the_unit_that_fits(ns, shown):
    assert spaced(fmt.duration(ns)) == shown


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (1536, "1.50 KiB"),
        (2**20, "1.00 MiB"),
        (3 * 2**30, "3.00 GiB"),
        (1_100_000, "1.05 MiB"),
    ],
)
def test_sizes_are_binary(size, shown):
    assert spaced(fmt.size(size)) == shown


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [
        (1, "0 %"),
        (1.066, "+6.6 %"),
        (0.934, "−6.6 %"),
        (1.15, "+15 %"),
        (1.0004, "+0.04 %"),
        (1.000001, "0 %"),
        (2.4, "×2.40"),
        (25, "×25.0"),
        (0.25, "×0.250"),
        (None, "–"),
        (-1, "–"),
    ],
)
def test_a_ratio_is_a_change_near_one_and_a_factor_far_away(ratio, shown):
    assert spaced(fmt.change(ratio)) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0, "0 %"),
        (1, "100 %"),
        (0.41, "41 %"),
        (0.0123, "1.2 %"),
        (1e-7, "< 0.001 %"),
        (0.997, "99.7 %"),
        (0.99999, "> 99.9 %"),
        (None, "–"),
    ],
)
def test_a_share_never_rounds_to_all_or_nothing(share, shown):
    assert spaced(fmt.percent(share)) == shown


def test_a_chosen_share_has_no_zeros_at_its_end():
    assert spaced(fmt.percent(0.02, trim=True)) == "2 %"
    assert spaced(fmt.percent(0.2, trim=True)) == "20 %"
    assert spaced(fmt.percent(0.025, trim=True)) == "2.5 %"


@pytest.mark.parametrize(
    ("given_", "shown"),
    [(-15046.8, "10⁻¹⁵⁰⁴⁷"), (-3.4, "10⁻³"), (-2.4, "0.004"), (0, "1.000"), (None, "–")],
)
def test_p_values_below_every_float(given_, shown):
    assert fmt.log10_probability(given_) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.85, "850 ms"), (12.34, "12.3 s"), (125, "2 min 5 s"), (12_000, "3 h 20 min"), (None, "–")],
)
def test_spans_read_like_speech(seconds, shown):
    assert spaced(fmt.span(seconds)) == shown


def test_moments_are_in_utc_and_nonsense_is_shown_as_it_is():
    assert fmt.moment("2026-11-21T12:02:11+02:00") == "2026-11-21 10:02:11 UTC"
    assert fmt.moment("2026-11-21T10:02:11Z") == "2026-11-21 10:02:11 UTC"
    assert fmt.moment("2026-11-21T10:02:11") == "2026-11-21 10:02:11"
    assert fmt.moment("yesterday\x1b[31m") == "yesterday\\x1b[31m"
    assert fmt.moment(12) == fmt.NONE


def test_a_quantity_takes_the_formatter_of_its_unit():
    assert spaced(fmt.quantity(118_250, "ns")) == "118 µs"
    assert spaced(fmt.quantity(56_309.9, "1/s")) == "56 310 /s"
    assert spaced(fmt.quantity(2048, "B")) == "2.00 KiB"
    assert spaced(fmt.quantity(2.5, "rows")) == "2.50 rows"
    assert fmt.quantity(2.5, None) == "2.50"
    assert fmt.quantity(None, "rows") == fmt.NONE


@given(FINITE.filter(lambda value: abs(value) < 1e24))
def test_a_duration_read_back_is_the_value_to_three_digits(ns):
    number, _, unit = fmt.duration(ns).rpartition(fmt.THIN)
    read = float(number.replace(fmt.THIN, "").replace(fmt.MINUS, "-")) * UNITS_NS[unit]
    assert math.isclose(read, ns, rel_tol=0.00502, abs_tol=1e-300)


@given(st.integers(0, 2**62))
def test_a_size_read_back_is_the_value_to_three_digits(size):
    number, _, unit = fmt.size(size).rpartition(fmt.THIN)
    read = float(number.replace(fmt.THIN, "")) * UNITS_B[unit]
    assert math.isclose(read, size, rel_tol=0.00502)


@given(FINITE, st.integers(1, 6))
def test_no_number_is_shown_with_an_exponent(value, digits):
    assert re.fullmatch(r"−?[\d\u202f]+(\.\d+)?", fmt.significant(value, digits))


@given(st.integers(-(10**15), 10**15))
def test_a_count_keeps_every_digit(value):
    assert int(fmt.count(value).replace(fmt.THIN, "").replace(fmt.MINUS, "-")) == value


@given(st.floats(0, 1e300))
def test_the_sign_of_a_change_is_that_of_the_change(ratio):
    shown = fmt.change(ratio)
    assert not (shown.startswith("+") and ratio < 1)
    assert not (shown.startswith(fmt.MINUS) and ratio > 1)


@given(st.text(st.characters(codec=None), max_size=80))
def test_safe_text_has_no_control_or_direction_character_and_stays_as_it_is_the_second_time(given_):
    shown = fmt.text(given_)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ud800-\udfff]", shown)
    assert fmt.text(shown) == shown
    shown.encode()


def test_foreign_text_shows_what_it_hides():
    assert fmt.text("a\x1b[31mb\u202ec\x00\r\nd\te") == "a\\x1b[31mb\\u202ec\\x00\nd\te"
    assert fmt.line("  select\n\t1  ") == "select 1"
    assert fmt.line("abcdef", 4) == "abc…"


@pytest.mark.parametrize(("value", "said"), [(3.0, "3"), (0.5001, "0.5001"), (12345.0, "12 345"), (2.00004, "2.000")])
def test_a_whole_number_in_a_table_has_no_zeros_behind_its_point(value: float, said: str):
    """Three waiters each were 3.000."""
    row = Row({"each": value})
    assert spaced(value_text(row, Column("each", "each", "number"))) == said


def test_an_interval_is_of_one_kind():
    """One end was a factor and the other a percentage: `×0.467 to −46 %`."""
    assert spaced(fmt.interval(0.467, 0.54)) == "×0.467 to ×0.540"
    assert spaced(fmt.interval(1.62, 2.24)) == "×1.62 to ×2.24"
    assert spaced(fmt.interval(1.059, 1.073)) == "+5.9 % to +7.3 %"
    assert spaced(fmt.interval(0.7, 2e6)) == "×0.700 to > ×1000"
    assert fmt.interval(None, 2) == fmt.NONE
