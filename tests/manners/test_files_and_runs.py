"""-o writes the format of its suffix or nothing; `runs` fits the screen; 'last' is the last run with evidence."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dbdyno.base.errors import Error
from dbdyno.cli.main import cli
from dbdyno.cli.output import Output, form_of
from dbdyno.evidence.run import Block, find_run, new_run


def run(*words: str | Path, **environment: str) -> Result:
    return CliRunner(env=environment).invoke(cli, list(map(str, words)))


def made(folder: Path, title: str, *, blocks: int, status: str) -> str:
    """Create a run with this status and that many complete blocks; return its name."""
    found = new_run(folder, title, {"title": title, "blocks_planned": 20}, name=title)
    for index in range(blocks):
        found.add_block(Block(index, "measure", 0, 1, 0, []))
    found.save(status=status)
    return found.id


@pytest.mark.parametrize("suffix", [".pdf", ".docx", ".htm", ""])
@pytest.mark.parametrize(
    "words",
    [
        ("report", "last"),
        ("studies",),
        ("runs",),
        ("stats", "prob-r", "0.1", "100"),
        ("model", "show", "san"),
        ("model", "list"),
    ],
)
def test_a_file_of_a_suffix_that_names_no_format_is_not_written(words: tuple[str, ...], suffix: str, tmp_path: Path):
    made(tmp_path, "r", blocks=1, status="complete")
    file = tmp_path / f"x{suffix}"
    folder = ("--runs", tmp_path) if words[0] in ("report", "runs") else ()
    done = run(*words, "-o", file, *folder)
    assert isinstance(done.exception, Error)
    assert "suffix" in str(done.exception)
    assert "next: write to one of ." in str(done.exception)
    assert not file.exists()


def test_the_form_is_that_of_the_option_else_of_the_suffix():
    forms = ("table", "csv", "html")
    assert form_of(Output(), forms) == "table"
    assert form_of(Output("csv", Path("x.pdf")), forms) == "csv"
    assert form_of(Output(None, Path("x.HTML")), forms) == "html"
    assert form_of(Output(None, Path("x.txt")), forms) == "table"


def test_the_list_of_runs_fits_the_columns_asked_for(tmp_path: Path):
    made(tmp_path, "a-run-of-a-plan-with-a-rather-long-title", blocks=1, status="complete")
    long = "whether more memory makes the report of all the orders of a region faster"
    found = find_run("last", tmp_path)
    found.save(title=long, verdict={"headline": long})
    wide = max(map(len, run("runs", "--runs", tmp_path, COLUMNS="400").stdout.splitlines()))
    narrow = max(map(len, run("runs", "--runs", tmp_path, COLUMNS="120").stdout.splitlines()))
    slim = max(map(len, run("runs", "--runs", tmp_path, COLUMNS="80").stdout.splitlines()))
    assert wide > 200
    assert slim <= 106, "the run's name, and three texts of twelve: it was 141 on every narrow terminal"
    assert narrow <= 160, "names and numbers stay whole, sentences are broken"
    assert narrow < wide


def test_the_last_runs_are_shown_when_only_they_are_asked_for(tmp_path: Path):
    names = [made(tmp_path, f"r{number}", blocks=1, status="complete") for number in range(5)]
    shown = run("runs", "--runs", tmp_path, "--limit", "2", "--format", "csv").stdout
    assert [line.split(",")[0] for line in shown.splitlines()[1:]] == names[-2:]


def test_a_run_that_died_before_its_first_block_does_not_become_last(tmp_path: Path):
    whole = made(tmp_path, "1-whole", blocks=1, status="complete")
    made(tmp_path, "2-refused", blocks=0, status="aborted")
    assert find_run("last", tmp_path).id == whole
    assert find_run("2-refused", tmp_path).id == "2-refused", "by its name it is found"
    cut = made(tmp_path, "3-cut", blocks=2, status="aborted")
    assert find_run("last", tmp_path).id == cut


def test_where_no_run_has_evidence_the_last_one_is_last(tmp_path: Path):
    made(tmp_path, "1", blocks=0, status="aborted")
    made(tmp_path, "2", blocks=0, status="aborted")
    assert find_run("last", tmp_path).id == "2"
