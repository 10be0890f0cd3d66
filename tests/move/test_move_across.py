"""Tests of moves from server to server without files: the values are equal, a failure changes nothing, and a kill
doubles nothing."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from move_lab import Lab, started
from test_move_in import arrived, content, nothing_left
from test_move_types import NATIVE, WORDS, filled

from command_line import checked, dbdyno, succeeded
from dbdyno.move.ledger.folder import Ledger
from fresh_dice import fresh_dice
from waiting import until


def across(lab: Lab, *words: object) -> subprocess.CompletedProcess[str]:
    """Move from the server to itself."""
    return dbdyno("move", lab.dsn, "--to", lab.dsn, "--job", lab.folder / "job", *words)


def go_on(lab: Lab, *words: object) -> subprocess.CompletedProcess[str]:
    """Resume the job."""
    return dbdyno("move", "resume", lab.folder / "job", "--source", lab.dsn, "--to", lab.dsn, *words)


def test_all_types_arrive_as_they_were(lab: Lab) -> None:
    filled(lab, {**NATIVE, **WORDS}, 40)
    lab.run("update t set n = 'NaN', d = 'infinity', ts = '-infinity' where id = 7", "create table u (like t)")
    done = across(lab, "--table", "t", "--into", "u", "--piece", "16KiB", "--verify", "target")
    read = "the staged rows, read again from the server, were those of the source"
    arrived(lab, "u", done, read, "Cost to the source: ")
    status = dbdyno("move", "status", lab.folder / "job", "--cost", "--format", "json")
    sessions = json.loads(status.stdout)
    assert sum(one["rows"] for one in sessions) == 40
    assert all(one["blocks_fetched"] > 0 for one in sessions)
    again = go_on(lab)
    assert (again.returncode, "the job is complete" in again.stderr) == (2, True)


def test_the_target_is_the_second_word_and_the_job_gets_a_folder(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lab.run("create table t as select g id from generate_series(1, 5) g", "create table u (like t)")
    done = succeeded("move", lab.dsn, lab.dsn, "--table", "t", "--into", "u", cwd=tmp_path)
    [folder] = (tmp_path / "jobs").iterdir()
    assert folder.name.endswith("Z-t")
    assert done.stderr.startswith(
        f"job: jobs/{folder.name}; if it is interrupted: dbdyno move resume jobs/{folder.name}\n"
    )
    assert lab.rows("select count(*) from u") == [(5,)]


def test_a_query_makes_its_table_and_a_merge_counts(lab: Lab) -> None:
    lab.run("create table t as select g id, g::numeric(8,2) / 4 as x from generate_series(1, 100) g")
    checked(across(lab, "--query", "select id, x::numeric(6,1) as x from t where id <= 60", "--into", "u", "--create"))
    assert lab.rows("select count(*), sum(x) from u") == lab.rows(
        "select 60, sum(x::numeric(6,1)) from t where id <= 60"
    )
    rounded = dbdyno(
        *("move", lab.dsn, "--to", lab.dsn, "--job", lab.folder / "second", "--table", "t", "--into", "u"),
        *("--mode", "merge", "--key", "id"),
    )
    assert rounded.returncode == 1, rounded.stderr
    assert "40 rows added" in rounded.stdout
    assert "NOT the same: column x (numeric(6,1))" in rounded.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--table", "t", "--into", "nowhere"), "there is no such table"),
        (("--table", "t", "--into", "narrow"), "has no column 'x'"),
        (("--table", "t", "--into", "u", "--text", "x"), "does not work from server to server"),
        (("--table", "t", "--into", "u", "--verify", "files"), "a move from server to server has no files"),
        (("--query", "select 1 as id"), "--into"),
        (("--table", "t", "--into", "checked"), "check constraint"),
    ],
)
def test_what_cannot_go_across_changes_nothing(lab: Lab, words: tuple[str, ...], said: str) -> None:
    lab.run(
        "create table t as select g id, 'x' as x from generate_series(1, 10) g",
        "create table u (id int, x text)",
        "create table narrow (id int)",
        "create table checked (id int check (id < 9), x text)",
    )
    done = across(lab, *words)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert lab.rows("select count(*) from checked") == [(0,)]
    # What could not begin leaves no folder to trip over; what was staged can go on.
    assert (lab.folder / "job").exists() == ("checked" in words)


@pytest.mark.parametrize("named", ['"Odd.Schema".u', "u"])
def test_an_aborted_job_says_what_to_drop_and_in_which_schema(lab: Lab, named: str) -> None:
    lab.run(
        'drop schema if exists "Odd.Schema" cascade',
        'create schema "Odd.Schema"',
        f"create table {named} (id int check (id < 9))",
        "create table t as select g id from generate_series(1, 10) g",
    )
    refused = across(lab, "--table", "t", "--into", named)
    assert (refused.returncode, "check constraint" in refused.stderr) == (2, True), refused.stderr
    assert not nothing_left(lab)
    done = succeeded("move", "abort", lab.folder / "job")
    found = re.search(r"its staging tables are left: drop table (.*) cascade(.*)\.", done.stdout)
    assert found is not None, done.stdout
    assert found[1].startswith('"Odd.Schema".dbdyno_move_' if "." in named else "dbdyno_move_")
    assert found[2] == ("" if "." in named else " (in the schema that holds the table)")
    lab.run(f"drop table {found[1]} cascade")
    assert nothing_left(lab)
    lab.run('drop schema "Odd.Schema" cascade')


@pytest.mark.parametrize("kills", [1, pytest.param(25, marks=pytest.mark.soak)])
def test_kills_at_random_instants_double_and_lose_nothing(lab: Lab, kills: int) -> None:
    rng = fresh_dice()
    lab.run("create table t as select g id, md5(g::text) x from generate_series(1, 30000) g", "create table u (like t)")
    first = ["--table", "t", "--into", "u", "--piece", "64KiB", "--rate-limit", "2MB/s", "--workers", "2"]
    command: list[Any] = [lab.dsn, "--to", lab.dsn, "--job", lab.folder / "job", *first]
    resumed: list[Any] = ["resume", lab.folder / "job", "--source", lab.dsn, "--to", lab.dsn, "--restart"]
    for _ in range(kills):
        process = started(*command)
        until(lambda: not process.is_alive() or _staged(lab), 60, pause_s=0.01)  # noqa: B023  # used within this turn
        process.join(rng.random() * 0.6)
        process.kill()
        process.join()
        if (lab.folder / "job" / "_dbdyno" / "manifest.json").exists():
            command = resumed if rng.random() < 0.5 else [*resumed[:-1], "--as-of-now"]
        assert lab.rows("select count(*), count(distinct id) from u") in ([(0, 0)], [(30000, 30000)])
    done = go_on(lab, "--as-of-now", "--verify", "source")
    complete = "the job is complete" in done.stderr
    assert complete or done.returncode == 0, done.stderr
    assert content(lab, "u") == content(lab, "t")
    assert nothing_left(lab)


def _staged(lab: Lab) -> bool:
    return lab.rows("select count(*) > 0 from pg_stat_activity where query like 'copy %dbdyno_move_%'") == [(True,)]


def test_bad_rows_go_to_a_file_with_the_chunk_and_the_others_in(lab: Lab) -> None:
    lab.run(
        "create table t as select g as id, g::text as x from generate_series(1, 400) g",
        "update t set x = 'much too long' where id in (7, 300)",
        "create table u (id int primary key check (id <> 9), x varchar(5))",
        "insert into u values (1000, 'old')",
    )
    bad = lab.folder / "bad.jsonl"
    words = ("--to", lab.dsn, "--into", "u", "--piece", "8KiB", "--verify", "source", "--rejects")
    few = dbdyno("move", lab.dsn, "--table", "t", *words, bad, "--job", lab.folder / "few", "--max-rejects", "2")
    assert (few.returncode, "more than 2 rows cannot be loaded" in few.stderr) == (2, True), few.stderr
    assert not bad.exists()
    assert lab.rows("select count(*) from u") == [(1,)]
    # The rows still stand staged: once the table takes them, the job goes on.
    lab.run("alter table u drop constraint u_id_check")
    done = dbdyno("move", "resume", lab.folder / "few", "--source", lab.dsn, "--to", lab.dsn)
    assert (done.returncode, "2 rows rejected" in done.stdout) == (1, True), done.stderr
    told = [json.loads(line) for line in bad.read_text().splitlines()]
    assert sorted(one["values"]["id"] for one in told) == [7, 300]
    chunks = Ledger.open(lab.folder / "few").plan["chunks"]
    assert {one["file"] for one in told} <= {f"chunk {one['number']}" for one in chunks}, told
    assert len({(one["file"], one["row"]) for one in told}) == 2, told
    assert all("value too long" in one["reason"] and one["code"] == "22001" for one in told)
    assert lab.rows("select count(*), count(*) filter (where id = 1000) from u") == [(399, 1)]
    again = dbdyno("move", lab.dsn, "--table", "t", *words, bad, "--job", lab.folder / "again")
    assert (again.returncode, "already exists" in again.stderr) == (2, True)
    assert lab.rows("select count(*) from pg_class where relname like 'dbdyno_move_%'") == [(0,)]
