"""Values that have no mean, groups too small for a test, tables without rows: each gives a result or a reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dbdyno.base.errors import StatsError
from dbdyno.cli.main import cli

TABLES = {
    "infinite": "1,a\n2,a\ninf,b\n3,b\n4,b\n",
    "huge": "1e200,a\n-1e200,a\n2e200,b\n3,b\n1e200,b\n",
    "one value": "1,a\n2,b\n3,b\n4,b\n",
    "two constants": "5,a\n5,a\n5,a\n7,b\n7,b\n7,b\n",
    "one constant": "5,a\n5,a\n5,b\n5,b\n",
    "three constants": "5,a\n5,a\n6,b\n6,b\n7,c\n",
}


def stats(command: str, text: str, folder: Path, *words: str) -> Result:
    file = folder / "t.csv"
    file.write_text(f"v,g\n{text}")
    return CliRunner().invoke(cli, ["stats", command, str(file), "-y", "v", "--by", "g", *words])


@pytest.mark.parametrize("form", ["table", "json", "csv"])
@pytest.mark.parametrize("command", ["summary", "test", "outliers"])
@pytest.mark.parametrize("name", TABLES)
def test_every_command_of_stats_answers_on(name: str, command: str, form: str, tmp_path: Path):
    done = stats(command, TABLES[name], tmp_path, "--format", form)
    assert done.exception is None, done.exception
    assert done.exit_code == 0


def test_a_test_that_is_not_defined_says_why_and_the_others_stand(tmp_path: Path):
    for name, reason in (
        ("one value", "the test needs at least two values in each group"),
        ("two constants", "the values do not vary in either group"),
        ("infinite", "some values are infinite, or too large to be squared"),
    ):
        found = stats("test", TABLES[name], tmp_path, "--format", "json").stdout
        tests = {row["test"]: row for row in json.loads(found)["tests"]}
        assert tests["Welch t"]["note"] == f"not defined: {reason}"
        assert tests["Welch t"]["p"] is None
        assert 0 < tests["Mann-Whitney U"]["p"] <= 1


def test_groups_without_a_mean_are_named(tmp_path: Path):
    done = stats("summary", TABLES["huge"], tmp_path)
    assert "note: a, b: some values are infinite, or too large to be squared" in done.stderr


@pytest.mark.parametrize("command", ["summary", "test", "outliers"])
def test_a_table_of_names_without_rows_is_said_to_be_one(command: str, tmp_path: Path):
    error = stats(command, "", tmp_path).exception
    assert isinstance(error, StatsError)
    assert "has no rows below the column names" in str(error)


@pytest.mark.parametrize(("text", "n"), [("1e6", 10**6), ("1_000", 1_000), ("600", 600)])
def test_the_n_of_prob_r_may_have_an_exponent(text: str, n: int):
    done = CliRunner().invoke(cli, ["stats", "prob-r", "0.1", text, "--format", "json"])
    assert json.loads(done.stdout)[0]["n"] == n


@pytest.mark.parametrize("text", ["1.5", "nan", "inf", "many"])
def test_the_n_of_prob_r_is_a_whole_number(text: str):
    assert CliRunner().invoke(cli, ["stats", "prob-r", "0.1", text]).exit_code == 2


def test_a_table_without_numbers_names_its_columns_and_what_they_hold(tmp_path: Path):
    """It was "several columns have numbers: choose one name one with -y: there is none"."""
    file = tmp_path / "t.csv"
    file.write_text("who,what\nann,tea\nbob,rum\n")
    with pytest.raises(StatsError, match="none of the columns contains numbers") as told:
        CliRunner().invoke(cli, ["stats", "summary", str(file)], catch_exceptions=False)
    assert "found the columns who (varchar), what (varchar)" in str(told.value)


@pytest.mark.parametrize(
    ("text", "counted"),
    [("v\ninf\n1\n2\n", 3), ("inf\n1\n2\n", 3), ("nan\n1\n2\n", 2), ("v,w\n1,x\n2,inf\nnan,y\n", 2)],
    ids=["below a name", "in the first line", "nan in the first line", "beside words"],
)
def test_infinities_are_numbers_wherever_they_stand(text: str, counted: int, tmp_path: Path):
    """DuckDB takes them for words, and alone in a first line for the name of the column."""
    file = tmp_path / "t.csv"
    file.write_text(text)
    done = CliRunner().invoke(cli, ["stats", "summary", str(file), "--format", "json"])
    (row,) = json.loads(done.stdout)
    assert (row["n"], row["missing"]) == (counted, 3 - counted)


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("table", ["-inf", "1", "2", "3", "inf"]),
        ("csv", ["-inf", "1.0", "2.0", "3.0", "inf"]),
        ("json", ["-inf", 1.0, 2.0, 3.0, "inf"]),
    ],
)
def test_an_infinite_quantile_is_written_and_is_no_missing_one(form: str, shown: list[object], tmp_path: Path):
    """It was an empty cell and null, as what cannot be known is; the mean of both infinities still is one."""
    file = tmp_path / "t.csv"
    file.write_text("v\n1\n2\ninf\n3\n-inf\n")
    done = CliRunner().invoke(cli, ["stats", "summary", str(file), "--format", form], catch_exceptions=False)
    if form == "json":
        (row,) = json.loads(done.stdout)
        assert [row[name] for name in ("min", "q1", "median", "q3", "max")] == shown
        assert row["mean"] is None
    else:
        words = [word for word in done.stdout.splitlines()[1].replace(",", " ").split() if word not in ("t", "v")]
        assert words[2:] == shown
