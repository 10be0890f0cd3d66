"""Rows as an Arrow stream: with types and complete, and refused if the output is a terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from command_line import dbdyno, on_a_terminal, succeeded
from dbdyno.cli.arrow import write_rows
from mock_plans import two_arms

ipc = pytest.importorskip("pyarrow.ipc", reason="pyarrow is not installed")

QUERY = "select arm, elapsed_ns, elapsed_ns / 1e6 as ms, kind, arm from calls order by started_ns, arm"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("arrow")
    (made / "plan.toml").write_text(two_arms(blocks=2))
    done = dbdyno("run", "plan.toml", "--seed", 1, cwd=made)
    assert done.returncode in (0, 1), done.stderr
    return made


def test_a_query_gives_the_rows_of_csv_with_their_types(folder: Path) -> None:
    succeeded("sql", QUERY, "-o", "rows.arrow", cwd=folder)
    table = ipc.open_stream((folder / "rows.arrow").read_bytes()).read_all()
    assert table.column_names == ["arm", "elapsed_ns", "ms", "kind", "arm_2"]
    assert str(table.schema.field("ms").type) == "double"
    assert "int64" in str(table.schema.field("elapsed_ns").type)
    lines = dbdyno("sql", QUERY, "--format", "csv", cwd=folder).stdout.splitlines()[1:]
    assert len(lines) == table.num_rows > 0
    assert [int(line.split(",")[1]) for line in lines] == table.column("elapsed_ns").to_pylist()


def test_into_a_pipe(folder: Path) -> None:
    command = [sys.executable, "-P", "-m", "dbdyno", "sql", QUERY, "--format", "arrow"]
    piped = subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=True)
    assert ipc.open_stream(piped.stdout).read_all().num_rows > 0


def test_a_report_gives_the_numbers_of_its_rows_as_csv_does(folder: Path) -> None:
    succeeded("report", "last", "-o", "page.arrow", cwd=folder)
    table = ipc.open_stream((folder / "page.arrow").read_bytes()).read_all()
    head, *lines = dbdyno("report", "last", "--format", "csv", cwd=folder).stdout.splitlines()
    assert table.column_names == head.split(",")
    assert table.num_rows == len(lines) > 0
    assert str(table.schema.field("ratio").type) == "double"


def test_a_column_of_numbers_and_words_becomes_one_of_words(tmp_path: Path) -> None:
    write_rows([{"value": 1.5}, {"value": "on"}, {"value": None}], tmp_path / "rows.arrow")
    table = ipc.open_stream((tmp_path / "rows.arrow").read_bytes()).read_all()
    assert table.column("value").to_pylist() == ["1.5", "on", None]


def test_the_list_of_runs(folder: Path) -> None:
    assert dbdyno("runs", "-o", "runs.arrow", cwd=folder).returncode == 0
    assert ipc.open_stream((folder / "runs.arrow").read_bytes()).read_all().num_rows == 1


def test_no_arrow_on_a_terminal(folder: Path) -> None:
    shown = on_a_terminal("sql", QUERY, "--format", "arrow", cwd=folder)
    assert b"cannot be shown in a terminal" in shown and b"-o" in shown


def test_a_place_that_cannot_be_written_is_named(folder: Path) -> None:
    (folder / "taken").write_text("")
    done = dbdyno("sql", QUERY, "-o", "taken/rows.arrow", cwd=folder)
    assert done.returncode == 2
    assert "taken/rows.arrow" in done.stderr


def test_without_the_package_it_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = dbdyno("sql", QUERY, "-o", "none.arrow", cwd=folder)
    assert done.returncode == 2
    assert "pip install 'dbdyno[arrow]'" in done.stderr
    assert not (folder / "none.arrow").exists()
