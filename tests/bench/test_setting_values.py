"""Values of settings: how they are written, read with units, compared and refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.bench.postgres.server import Postgres
from dbdyno.bench.postgres.setting_values import (
    SettingFact,
    as_text,
    configuration_line,
    list_elements,
    parse_bool,
    parse_number,
    problem_with,
    quoted_element,
    same_value,
    with_unit,
)


def fact(
    vartype: str = "integer",
    unit: str | None = None,
    setting: str = "0",
    limits: tuple[str, str] = ("0", "1000000"),
    choices: tuple[str, ...] = (),
    name: str = "x",
) -> SettingFact:
    return SettingFact(name, setting, unit, "user", vartype, "default", *limits, choices, None, False)


@pytest.mark.parametrize(("value", "text"), [(True, "on"), (False, "off"), (8, "8"), (0.5, "0.5"), ("8MB", "8MB")])
def test_values_of_a_plan_are_written_as_postgresql_writes_them(value: object, text: str) -> None:
    assert as_text(value) == text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("64MB", "kB", 65536),
        ("64MB", "8kB", 8192),
        ("1 GB", "MB", 1024),
        ("1.5GB", "MB", 1536),
        ("100", "8kB", 100),
        ("0x10", None, 16),
        ("010", None, 8),
        ("1e3", None, 1000),
        ("-1", "kB", -1),
        (" 5min ", "s", 300),
        ("1d", "ms", 86_400_000),
        ("1500us", "ms", 2),
        ("2h", "min", 120),
    ],
)
def test_whole_numbers_are_read_in_the_settings_unit(text: str, unit: str | None, number: int) -> None:
    assert parse_number(text, fact(unit=unit)) == number


@pytest.mark.parametrize(
    ("text", "unit"),
    [("8 apples", "kB"), ("8mb", "kB"), ("5min", "kB"), ("5kB", None), ("", "kB"), ("1;2", "kB")],
)
def test_what_is_no_number_in_that_unit_is_refused(text: str, unit: str | None) -> None:
    assert (problem_with(fact(unit=unit), text) or "").startswith("expected a number")


def test_a_number_outside_its_limits_is_refused_with_the_limits_in_bytes() -> None:
    pages = fact(unit="8kB", limits=("16", "1000"))
    assert problem_with(pages, "64kB") == "outside 128kB .. 8000kB"
    assert problem_with(pages, "128kB") is None
    assert with_unit(pages, "16") == "128kB"
    assert with_unit(fact(unit="ms"), "16") == "16ms"


def test_choices_and_booleans_are_checked_without_case() -> None:
    level = fact("enum", choices=("minimal", "replica"))
    assert problem_with(level, "Replica") is None
    assert problem_with(level, "none") == "expected one of minimal, replica"
    assert problem_with(fact("bool"), "TRUE") is None
    assert problem_with(fact("bool"), "maybe") == "expected on or off"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, True) for text in ("on", "t", "YES", "1", " true ")),
        *((text, False) for text in ("off", "of", "f", "n", "0")),
        *((text, None) for text in ("o", "", "2", "onn")),
    ],
)
def test_booleans_may_be_abbreviated_where_clear(text: str, value: bool | None) -> None:
    assert parse_bool(text) is value


@pytest.mark.parametrize(
    ("found", "wanted", "same"),
    [
        (fact(unit="8kB", setting="8192"), "64MB", True),
        (fact(unit="8kB", setting="8192"), "65MB", False),
        (fact("real", setting="0.1"), ".1", True),
        (fact("bool", setting="on"), "yes", True),
        (fact("enum", setting="replica"), "REPLICA", True),
        (fact("string", setting="a b"), "a b", True),
        (fact("string", setting="a b"), "A b", False),
        (fact("string", setting='"$user", public', name="search_path"), '"$user",public', True),
    ],
)
def test_a_value_in_force_is_recognised_however_it_is_written(found: SettingFact, wanted: str, same: bool) -> None:
    assert same_value(found, wanted) is same


def test_lists_are_taken_apart_and_keep_quoted_commas() -> None:
    assert list_elements('a, "b, c" ,"d""e"') == ["a", "b, c", 'd"e']
    assert list_elements("") == [""]
    assert list_elements(quoted_element('odd", name')) == ['odd", name']


def test_a_configuration_line_refuses_what_is_no_name() -> None:
    assert configuration_line("a.b", "c") == "a.b = 'c'\n"
    for name in ("a b", "a=1\nb", "a.b.c", "", "1a"):
        with pytest.raises(ValueError, match="not a setting's name"):
            configuration_line(name, "x")


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_configuration_line_is_one_line_whatever_the_value(value: str) -> None:
    line = configuration_line("log_line_prefix", value)
    assert line.count("\n") == 1
    inner = line.removeprefix("log_line_prefix = '").removesuffix("'\n")
    assert inner.replace("\\\\", "").replace("''", "").count("'") == 0


@pytest.mark.parametrize("text", ["7", "64MB", "1.5GB", "0x40", "0100", "100kB", "12345678B"])
@pytest.mark.parametrize("name", ["work_mem", "temp_buffers", "effective_cache_size"])
def test_the_engine_reads_the_same_number(own: Postgres, name: str, text: str) -> None:
    """PostgreSQL itself is the oracle for units and rounding."""
    from dbdyno.bench.postgres.settings import read_facts

    with contextlib.closing(own.connect()) as conn:
        wanted = parse_number(text, read_facts(conn, [name])[name])
        limits = read_facts(conn, [name])[name]
        if problem_with(limits, text):
            return
        conn.execute("select set_config(%s, %s, false)", [name, text])
        assert float(read_facts(conn, [name])[name].setting) == wanted
