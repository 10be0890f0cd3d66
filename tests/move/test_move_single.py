"""Tests of single files and pipes: Arrow and CSV, exported and loaded, complete or not at all."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from move_lab import Lab
from test_move_in import content, nothing_left
from test_move_types import NATIVE, WORDS, filled

from command_line import checked, dbdyno, succeeded


def to(lab: Lab, path: Path | str, *words: object) -> subprocess.CompletedProcess[str]:
    """Export the server's rows into one file."""
    return dbdyno("move", lab.dsn, "--to", path, *words)


@pytest.mark.parametrize("name", ["t.arrow", "t.csv"])
def test_all_types_go_out_and_come_back(lab: Lab, name: str) -> None:
    filled(lab, {**NATIVE, **WORDS}, 40)
    lab.run("update t set n = 'NaN', d = 'infinity' where id = 7", "create table u (like t)")
    path = lab.folder / name
    done = checked(to(lab, path, "--table", "t", "--piece", "16KiB", "--verify", "files", "--workers", "3"))
    assert "40 rows" in done.stdout
    succeeded("move", path, "--to", lab.dsn, "--table", "u", "--verify", "target")
    assert content(lab, "u") == content(lab, "t")
    assert nothing_left(lab)
    again = to(lab, path, "--table", "t")
    assert (again.returncode, "already exists" in again.stderr) == (2, True)
    assert not list(lab.folder.glob(".t.*"))


def test_a_csv_is_what_others_read(lab: Lab) -> None:
    lab.run('create table t (id int, "a,b" text)', "insert into t values (1, null), (2, ''), (3, E'x\"y\\n,z')")
    assert to(lab, lab.folder / "t.csv", "--table", "t").returncode == 0
    with contextlib.closing(duckdb.connect()) as conn:
        found = conn.execute(f"select * from read_csv('{lab.folder}/t.csv', header = true) order by 1")
        assert [one[0] for one in found.description] == ["id", "a,b"]
        assert found.fetchall()[2] == (3, 'x"y\n,z')
    assert "\n1,\n" in (lab.folder / "t.csv").read_text()
    assert '\n2,""\n' in (lab.folder / "t.csv").read_text()


def test_a_csv_rejects_by_the_number_of_its_row(lab: Lab) -> None:
    (lab.folder / "t.csv").write_text("id,x\n1,2\nno number,3\n4,\n")
    lab.run("create table u (id int, x int)")
    bad = lab.folder / "bad.jsonl"
    done = dbdyno("move", lab.folder / "t.csv", "--to", lab.dsn, "--table", "u", "--rejects", bad)
    assert (done.returncode, "2 rows added" in done.stdout) == (1, True), done.stderr
    assert '"row": 2, "reason": "invalid input syntax for type integer' in bad.read_text()
    (lab.folder / "t.csv").write_text("id,x\n1,2,3\n")
    torn = dbdyno("move", lab.folder / "t.csv", "--to", lab.dsn, "--table", "u")
    assert (torn.returncode, "extra data after last expected column" in torn.stderr) == (2, True)


def test_arrow_from_a_pipe_into_a_pipe(lab: Lab) -> None:
    lab.run("create table t as select g id, md5(g::text) x from generate_series(1, 5000) g", "create table u (like t)")
    words = [sys.executable, "-m", "dbdyno", "move"]
    out = subprocess.Popen([*words, lab.dsn, "--table", "t", "--to", "-"], stdout=subprocess.PIPE)
    done = subprocess.run(
        [*words, "-", "--to", lab.dsn, "--table", "u"], stdin=out.stdout, capture_output=True, check=False
    )
    assert out.stdout is not None
    out.stdout.close()
    assert (out.wait(), done.returncode) == (0, 0), done.stderr
    assert content(lab, "u") == content(lab, "t")


def test_a_pipe_that_is_closed_ends_quietly(lab: Lab) -> None:
    lab.run("create table t as select g id, md5(g::text) x from generate_series(1, 60000) g")
    words = [sys.executable, "-m", "dbdyno", "move", lab.dsn, "--table", "t", "--to", "-"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(100)
    process.stdout.close()
    said = process.stderr.read().decode()
    process.stderr.close()
    process.wait()
    assert "Traceback" not in said
    assert "error" not in said.lower()


def test_a_value_that_cannot_be_held_is_an_error_on_a_pipe_and_text_in_a_file(lab: Lab) -> None:
    lab.run("create table t (id int, d date)", "insert into t values (1, 'infinity')")
    piped = to(lab, "-", "--table", "t")
    assert (piped.returncode, "--text d" in piped.stderr) == (2, True)
    filed = to(lab, lab.folder / "t.arrow", "--table", "t", "--verify", "files")
    assert (filed.returncode, "is moved as text" in filed.stderr) == (0, True)
