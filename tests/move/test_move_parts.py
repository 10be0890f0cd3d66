"""Tests of `--partition-by`: every row is once in the folder of its value, after kills too, and comes back."""

from __future__ import annotations

import contextlib
import json

import duckdb
from move_lab import Lab
from test_move_in import content, into

from command_line import checked, dbdyno, succeeded


def test_rows_are_in_the_folder_of_their_value_and_go_back(lab: Lab) -> None:
    lab.run(
        'create table t (id int, "k=/%" text, x numeric(6,2))',
        "insert into t select g, (array['a', 'b/../c', null, 'ünï', '', '2026-01-02 03:04'])[g % 6 + 1], g"
        " from generate_series(1, 3000) g",
        "create table u (like t)",
    )
    lab.moved("--table", "t", "--partition-by", "k=/%", "--piece", "64KiB", "--verify", "source")
    folders = {place.name for place in lab.out.iterdir() if place.name != "_dbdyno"}
    names = {"a", "b%2F..%2Fc", "__HIVE_DEFAULT_PARTITION__", "ünï", "", "2026-01-02 03%3A04"}
    assert folders == {f"k%3D%2F%25={name}" for name in names}
    with contextlib.closing(duckdb.connect()) as conn:
        read = f"read_parquet('{lab.out}/k%3D%2F%25=%/*.parquet', hive_partitioning = false)".replace("=%/", "=*/")
        assert conn.execute(f"select count(*), count(distinct id), sum(x) from {read}").fetchall() == [
            (3000, 3000, 4501500)
        ]
        only = f"read_parquet('{lab.out}/*=a/*.parquet', hive_partitioning = false)"
        assert conn.execute(f'select distinct "k=/%" from {only}').fetchall() == [("a",)]
    assert dbdyno("move", "verify", lab.out).returncode == 0
    checked(into(lab, "--table", "u", "--verify", "target"))
    assert content(lab, "u") == content(lab, "t")


def test_a_rejected_row_is_named_with_its_folder(lab: Lab) -> None:
    lab.run(
        "create table t as select g id, g % 3 as k, 'x' || g as x from generate_series(1, 90) g",
        "create table u (id int check (id <> 44), k int, x varchar(9))",
    )
    lab.moved("--table", "t", "--partition-by", "k")
    done = into(lab, "--table", "u", "--rejects", lab.folder / "bad.jsonl")
    assert (done.returncode, "89 rows added" in done.stdout) == (1, True), done.stderr
    found = json.loads((lab.folder / "bad.jsonl").read_text())
    assert (found["file"], found["row"], found["values"]["id"]) == ("k=2/part-00000.parquet", 15, 44)


def test_what_is_lost_or_left_half_done_is_seen(lab: Lab) -> None:
    lab.run("create table t as select g id, g % 3 as k from generate_series(1, 9000) g")
    lab.moved("--table", "t", "--partition-by", "k", "--piece", "64KiB")
    next(lab.out.glob("k=1/*.parquet")).unlink()
    assert dbdyno("move", "verify", lab.out).returncode == 1
    manifest = lab.out / "_dbdyno" / "manifest.json"
    known = json.loads(manifest.read_bytes())
    manifest.write_text(json.dumps({**known, "status": "running"}))
    (lab.out / "k=7").mkdir()
    (lab.out / "k=7" / "part-00000.parquet").write_bytes(b"of a worker that was killed")
    succeeded("move", "resume", lab.out, "--source", lab.dsn, "--restart", "--verify", "files")
    assert not list(lab.out.glob("k=7/*"))
    assert lab.files("count(*), count(distinct id)", pattern="k=*/*.parquet") == [(9000, 9000)]


def test_too_many_values_are_one_error(lab: Lab) -> None:
    lab.run("create table t as select g id from generate_series(1, 900) g")
    done = lab.move("--table", "t", "--partition-by", "id")
    assert (done.returncode, "has more than 500 values" in done.stderr) == (2, True)
    assert not list(lab.out.glob("id=*/*"))
    lab.out = lab.folder / "other"
    missing = lab.move("--table", "t", "--partition-by", "nope")
    assert (missing.returncode, "has no column 'nope'" in missing.stderr) == (2, True)
