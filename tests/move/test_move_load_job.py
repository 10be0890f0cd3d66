"""Tests of loads with a ledger: staged pieces are not read again, and no row is doubled."""

from __future__ import annotations

import json
import os
import random
import subprocess
from itertools import accumulate, pairwise
from pathlib import Path

import duckdb
import pytest
from move_lab import Lab, started
from test_move_in import content, goes_back, nothing_left

from command_line import checked, dbdyno, succeeded
from dbdyno.move.ledger.folder import Ledger
from dbdyno.move.loading import pieces
from dbdyno.move.loading.pieces import pieces_of


def load(lab: Lab, *words: object) -> subprocess.CompletedProcess[str]:
    """Load the files of `out` into a table, with a ledger."""
    return dbdyno("move", lab.out, "--to", lab.dsn, "--job", lab.folder / "job", *words)


def go_on(lab: Lab, *words: object) -> subprocess.CompletedProcess[str]:
    """Resume the job."""
    return dbdyno("move", "resume", lab.folder / "job", "--to", lab.dsn, *words)


def numbers(lab: Lab, rows: int = 30_000) -> None:
    """Create several files, and a table for them."""
    lab.run(
        f"create table t as select g id, g % 7 k, md5(g::text) note from generate_series(1, {rows}) g",
        "create table u (id int primary key, k int, note text)",
    )
    lab.moved("--table", "t", "--piece", "256KiB")


def test_all_types_go_back_by_a_job(lab: Lab) -> None:
    goes_back(lab, load, "target")
    again = go_on(lab)
    assert (again.returncode, "the job is complete" in again.stderr) == (2, True)


def test_what_was_staged_is_not_read_again(lab: Lab) -> None:
    numbers(lab)
    lab.run("alter table u add constraint few check (id < 25000)")
    failed = load(lab, "--table", "u", "--workers", "1")
    assert failed.returncode == 2
    assert 'violates check constraint "few"' in failed.stderr
    status = dbdyno("move", "status", lab.folder / "job")
    assert "30000" in status.stdout.replace(",", "").replace(" ", ""), "all was staged before it failed"
    assert f"dbdyno move resume {lab.folder / 'job'} --target DSN" in status.stdout
    assert "by size and time" in status.stdout
    lab.run("alter table u drop constraint few")
    staged = {number: one["ended_ns"] for number, one in Ledger.open(lab.folder / "job").records().items()}
    done = checked(go_on(lab))
    assert "30,000 rows added" in done.stdout
    assert {number: one["ended_ns"] for number, one in Ledger.open(lab.folder / "job").records().items()} == staged
    assert content(lab, "u") == content(lab, "t")
    assert nothing_left(lab)
    report = json.loads(dbdyno("report", lab.folder / "job", "--format", "json").stdout)
    assert report["verdict"]["word"] == "Complete"
    assert "in one transaction" in report["verdict"]["headline"]
    assert [one["how"] for one in report["attempts"]] == ["begun", "resumed"]


def test_a_file_that_changed_is_not_taken_for_what_was_staged(lab: Lab) -> None:
    numbers(lab)
    lab.run("alter table u add constraint few check (id < 25000)")
    assert load(lab, "--table", "u").returncode == 2
    lab.run("alter table u drop constraint few")
    some = sorted(lab.out.glob("*.parquet"))[0]
    os.utime(some, (1, 1))
    refused = go_on(lab)
    assert (refused.returncode, "has changed since the job began" in refused.stderr) == (2, True)
    assert "--restart" in refused.stderr
    checked(go_on(lab, "--restart"))
    assert content(lab, "u") == content(lab, "t")
    assert nothing_left(lab)


def test_staging_tables_that_a_restart_emptied_are_told(lab: Lab) -> None:
    numbers(lab)
    lab.run("alter table u add constraint few check (id < 25000)")
    assert load(lab, "--table", "u").returncode == 2
    name = lab.rows("select relname from pg_class where relname like 'dbdyno_move_%' order by relname desc limit 1")
    lab.run(f"truncate {name[0][0]}", "alter table u drop constraint few")
    refused = go_on(lab)
    assert (refused.returncode, "empties unlogged tables" in refused.stderr) == (2, True)
    assert go_on(lab, "--restart").returncode == 0
    assert content(lab, "u") == content(lab, "t")


def test_rejected_rows_are_named_by_file_and_row(lab: Lab) -> None:
    numbers(lab, 20_000)
    lab.run("alter table u add constraint odd check (id <> 7777)")
    bad = lab.folder / "bad.jsonl"
    done = load(lab, "--table", "u", "--rejects", bad)
    assert (done.returncode, "1 row rejected" in done.stdout) == (1, True), done.stderr
    row = json.loads(bad.read_text())
    there = lab.rows("select count(*) from t where id <= 7777")
    assert there == [(7777,)]
    assert row["values"]["id"] in (7777, "7777")
    assert row["file"].endswith(".parquet")
    assert lab.rows("select count(*) from u") == [(19_999,)]
    assert nothing_left(lab)


@pytest.mark.parametrize("mode", [("merge", "--key", "id"), ("replace",), ("update", "--key", "id")])
def test_each_mode_goes_on(lab: Lab, mode: tuple[str, ...]) -> None:
    numbers(lab, 20_000)
    lab.run("insert into u select id, 0, '' from t where id <= 500", "alter table u add constraint few check (k < 6)")
    assert load(lab, "--table", "u", "--mode", *mode).returncode == 2
    lab.run("alter table u drop constraint few")
    checked(go_on(lab))
    rows = 500 if mode[0] == "update" else 20_000
    assert lab.rows("select count(*), count(*) filter (where note = md5(id::text)) from u") == [(rows, rows)]


def test_what_a_job_cannot_be_of_is_said(lab: Lab, tmp_path: Path) -> None:
    lab.run("create table u (id int)")
    given = tmp_path / "x.csv"
    given.write_text("id\n1\n")
    csv = dbdyno("move", given, "--to", lab.dsn, "--table", "u", "--job", lab.folder / "job")
    assert (csv.returncode, "a CSV file is loaded as a whole" in csv.stderr) == (2, True)
    stdin = dbdyno("move", "-", "--to", lab.dsn, "--table", "u", "--job", lab.folder / "job")
    assert (stdin.returncode, "stdin can be read only once" in stdin.stderr) == (2, True)
    assert not (lab.folder / "job").exists()


def killed(lab: Lab, after_s: float, *words: str) -> None:
    """Run a load in a separate process that is killed at some instant."""
    process = started(*words)
    process.join(after_s)
    process.kill()
    process.join()


def rounds_of_kills(lab: Lab, rounds: int, seed: int) -> int:
    """Kill a load at random instants and resume it until it is done; return the number of kills."""
    print(f"seed {seed}")
    draw, kills = random.Random(seed), 0
    job = lab.folder / "job"
    for _ in range(rounds):
        lab.run("truncate u")
        killed(lab, draw.uniform(0, 0.8), str(lab.out), "--to", lab.dsn, "--table", "u", "--job", str(job))
        kills += 1
        if not (job / "_dbdyno" / "manifest.json").exists():
            continue
        while draw.random() < 0.5:
            killed(lab, draw.uniform(0, 0.6), "resume", str(job), "--to", lab.dsn)
            kills += 1
        last = go_on(lab)
        assert last.returncode == 0 or "the job is complete" in last.stderr, last.stderr
        assert lab.rows("select count(*), sum(id), sum(k) from u") == lab.rows(
            "select count(*), sum(id), sum(k) from t"
        )
        dbdyno("move", "abort", job)
        for one in sorted(job.rglob("*"), reverse=True):
            one.rmdir() if one.is_dir() else one.unlink()
        job.rmdir()
    return kills


def test_a_kill_at_any_instant_doubles_nothing(lab: Lab) -> None:
    numbers(lab, 150_000)
    assert rounds_of_kills(lab, 1, random.randrange(1 << 32)) >= 1


@pytest.mark.soak
def test_many_kills_of_a_load_double_nothing(lab: Lab) -> None:
    numbers(lab, 300_000)
    print(rounds_of_kills(lab, 40, random.randrange(1 << 32)), "kills")


def one_great_file(lab: Lab, rows: int = 40_000) -> Path:
    """Write one file with many row groups, as other programs do."""
    numbers(lab, rows)
    path = lab.folder / "great.parquet"
    with duckdb.connect() as duck:
        duck.execute(
            f"copy (from read_parquet('{lab.out}/*.parquet') order by id) to '{path}'"
            " (format parquet, row_group_size 2048, compression uncompressed)"
        )
    return path


def test_one_great_file_is_work_for_all_workers(lab: Lab) -> None:
    path = one_great_file(lab)
    cut = pieces_of([path], 2)
    groups = [one.groups or (0, 0) for one in cut]
    assert len(groups) > 1
    assert groups[0][0] == 0
    assert all(one[1] == two[0] for one, two in pairwise(groups)), "no group is left out or there twice"
    rows = [one.rows or 0 for one in cut]
    assert [one.rows_before for one in cut] == [0, *accumulate(rows[:-1])]
    lab.run("alter table u add constraint odd check (id <> 33333)")
    bad = lab.folder / "bad.jsonl"
    done = dbdyno("move", path, "--to", lab.dsn, "--table", "u", "--rejects", bad, "--workers", "2")
    assert (done.returncode, "1 row rejected" in done.stdout) == (1, True), done.stderr
    assert json.loads(bad.read_text())["row"] == 33333, "rows are counted from the beginning of the file"
    assert lab.rows("select count(*), sum(id) from u") == [(39_999, 40_000 * 40_001 // 2 - 33_333)]
    lab.run("alter table u drop constraint odd")
    done = succeeded("move", path, "--to", lab.dsn, "--table", "u", "--job", lab.folder / "job", "--mode", "replace")
    assert "in 1 file, all of them accounted for" in done.stdout
    assert len(Ledger.open(lab.folder / "job").records()) > 1
    assert content(lab, "u") == content(lab, "t")


@pytest.mark.parametrize("sizes", [[5], [0, 0, 0], [9, 0, 0], [0, 0, 9], [1] * 20, [100, 1, 1, 1], [1, 1, 1, 100]])
def test_pieces_leave_no_group_out_whatever_sizes_a_file_claims(
    sizes: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(bytes(9 << 20))
    monkeypatch.setattr(pieces._core, "move_groups", lambda _: [(10, size) for size in sizes])
    for workers in range(1, 6):
        found = pieces_of([path], workers)
        groups = [one.groups or (0, len(sizes)) for one in found]
        assert [at for first, end in groups for at in range(first, end)] == list(range(len(sizes)))
        assert sum(one.rows or 0 for one in found) == 10 * len(sizes)
