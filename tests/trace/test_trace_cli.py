"""The commands on an imported run, as a user types them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from trace_evidence import order_entry

from command_line import dbdyno, succeeded, to_a_closed_pipe

PAGES = [
    ("sql",),
    ("waits",),
    ("waits", "--event", "log file sync"),
    ("tree",),
    ("timeline",),
]
DRAWN = PAGES[2:]


def named(words: tuple[str, ...]) -> str:
    return " ".join(words)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two imported runs, the second with slower commits."""
    folder = tmp_path_factory.mktemp("runs")
    order_entry(6, 60, 1.0, 1).write(folder / "before", title="before")
    order_entry(6, 60, 1.3, 2).write(folder / "after", title="after")
    return folder


@pytest.mark.parametrize("words", PAGES, ids=named)
def test_a_page_in_every_form(runs: Path, tmp_path: Path, words: tuple[str, ...]):
    table = dbdyno("trace", *words, runs / "before", COLUMNS="80")
    assert (table.returncode, table.stderr) == (0, "")
    assert max(map(len, table.stdout.splitlines())) <= 80
    assert "\x1b" not in table.stdout
    model = json.loads(dbdyno("trace", *words, runs / "before", "--format", "json").stdout)
    assert (model["schema"], model["kind"]) == (1, "trace")
    rows = list(csv.DictReader(io.StringIO(dbdyno("trace", *words, runs / "before", "--format", "csv").stdout)))
    lines = dbdyno("trace", *words, runs / "before", "--format", "jsonl").stdout.splitlines()
    assert len(rows) == len(lines) > 0
    page = tmp_path / "page.html"
    assert dbdyno("trace", *words, runs / "before", "-o", page).returncode == 0
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("words", DRAWN, ids=named)
@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_figure_by_its_suffix(runs: Path, tmp_path: Path, words: tuple[str, ...], suffix: str):
    file = tmp_path / f"figure.{suffix}"
    done = succeeded("trace", *words, runs / "before", "-o", file)
    assert done.stdout == ""
    head = file.read_bytes()[:60]
    assert (b"<svg" if suffix == "svg" else b"PNG") in head


def test_a_page_without_a_figure_says_so(runs: Path, tmp_path: Path):
    done = dbdyno("trace", "sql", runs / "before", "-o", tmp_path / "x.svg")
    assert done.returncode == 2
    assert "does not have a figure" in done.stderr


def test_an_unknown_suffix_is_refused(runs: Path, tmp_path: Path):
    done = dbdyno("trace", "sql", runs / "before", "-o", tmp_path / "x.doc")
    assert (done.returncode, done.stdout) == (2, "")
    assert "html" in done.stderr


def test_where_narrows_every_page(runs: Path):
    rows = dbdyno(
        "trace", "waits", "--where", "class = commit", runs / "before", "--format", "jsonl"
    ).stdout.splitlines()
    assert [json.loads(row)["event"] for row in rows] == ["log file sync"]
    wrong = dbdyno("trace", "waits", "--where", "evnt = 1", runs / "before")
    assert wrong.returncode == 2
    assert "^" in wrong.stderr


def test_ten_thousand_longest_are_rows_with_file_and_line(runs: Path):
    out = dbdyno(
        "trace", "waits", "--event", "log file sync", "--longest", 10_000, runs / "before", "--format", "csv"
    ).stdout
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == 360
    assert rows[0]["file"].endswith(".trc")
    assert int(rows[0]["line"]) > 0


def test_compare_ends_with_1_when_the_second_is_slower(runs: Path):
    done = dbdyno("compare", runs / "before", runs / "after")
    assert done.returncode == 1
    assert "SLOWER  after took" in done.stdout and "a log file sync takes" in done.stdout
    assert dbdyno("compare", runs / "after", runs / "before").returncode == 0


def test_compare_of_traces_in_every_form(runs: Path, tmp_path: Path):
    page = tmp_path / "verdict.html"
    assert dbdyno("compare", "before", "after", "--runs", runs, "-o", page).returncode == 1
    assert "What made the difference" in page.read_text()
    out = dbdyno("compare", runs / "before", runs / "after", "--format", "csv").stdout
    assert {row["family"] for row in csv.DictReader(io.StringIO(out))} == {
        "whole",
        "event",
        "call",
        "statement",
    }


def test_compare_of_one_set_of_traces_says_what_is_missing(runs: Path):
    done = dbdyno("compare", runs / "before")
    assert done.returncode == 2
    assert "two sets" in done.stderr


def test_sql_runs_and_their_list_know_imported_traces(runs: Path):
    query = "select count(*) as n from waits join calls using (call)"
    rows = json.loads(dbdyno("sql", query, "--run", "before", "--runs", runs, "--format", "json").stdout)
    assert rows == [{"n": 360}]
    assert json.loads(
        dbdyno("sql", "select count(*) as n from unread", "--run", "before", "--runs", runs, "--format", "json").stdout
    ) == [{"n": 0}]
    listed = json.loads(dbdyno("runs", "--runs", runs, "--format", "json").stdout)
    assert [(row["run"], row["status"]) for row in listed] == [
        ("after", "complete"),
        ("before", "complete"),
    ]
    wrong = dbdyno("sql", "select * from metrics", "--run", "before", "--runs", runs)
    assert wrong.returncode == 2
    assert "statements" in wrong.stderr


def test_a_run_of_an_experiment_is_no_trace(tmp_path: Path):
    (tmp_path / "manifest.json").write_text('{"schema": 1, "kind": "experiment"}')
    done = dbdyno("trace", "sql", tmp_path)
    assert done.returncode == 2
    assert "not one of an imported trace" in done.stderr


def test_a_closed_pipe_ends_quietly(runs: Path):
    done = to_a_closed_pipe("trace", "timeline", runs / "before", "--format", "jsonl")
    assert done.stderr == ""
    assert json.loads(done.stdout)["session"] == "0.1"


def test_a_misspelt_command_is_answered_with_the_nearest():
    done = dbdyno("trace", "profil", "x.trc")
    assert done.returncode == 2
    assert "'profile'" in done.stderr
