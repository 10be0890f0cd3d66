"""Tests of rejected rows: each is in the file with its reason and place, and all others are in the table."""

from __future__ import annotations

import contextlib
import json

import duckdb
from move_lab import Lab
from test_move_in import into, nothing_left

from dbdyno.base.json_types import TableRow


def rejected(lab: Lab) -> list[TableRow]:
    """Return the rows of the file of rejects."""
    return [json.loads(line) for line in (lab.folder / "bad.jsonl").read_text().splitlines()]


def planted(lab: Lab) -> None:
    """Create 3,000 rows, four of which have a fault."""
    lab.run(
        "create table t as select g id, g::text as ip, g % 7 as k from generate_series(1, 3000) g",
        "update t set ip = '10.0.0.' || id % 250",
        "update t set ip = 'no address' where id = 1234",
        "update t set id = 5 where id = 2000",
        "update t set k = null where id = 2500",
        "update t set k = 50 where id = 2999",
        "create table u (id int primary key, ip inet, k int not null check (k < 10))",
    )
    lab.moved("--table", "t", "--piece", "64KiB")


def test_bad_rows_go_to_a_file_with_reason_and_place_and_the_others_in(lab: Lab) -> None:
    planted(lab)
    bad = lab.folder / "bad.jsonl"
    done = into(lab, "--table", "u", "--rejects", bad, "--verify", "target")
    assert done.returncode == 1, done.stderr
    assert "2,996 rows added" in done.stdout
    assert "4 rows rejected" in done.stdout
    found = {(one["values"]["id"], one["code"]): one for one in rejected(lab)}
    assert set(found) == {(1234, "22P02"), (5, "23505"), (2500, "23502"), (2999, "23514")}
    assert "no address" in found[1234, "22P02"]["reason"]
    with contextlib.closing(duckdb.connect()) as conn:
        for (number, _), one in found.items():
            rows = conn.execute(f"select id from read_parquet('{lab.out / one['file']}')").fetchall()
            assert rows[one["row"] - 1] == (number,), "the place is that of the row in its file"
    assert lab.rows("select count(*), count(distinct id) from u") == [(2996, 2996)]
    assert bad.stat().st_mode & 0o077 == 0
    again = into(lab, "--table", "u", "--rejects", bad)
    assert (again.returncode, "already exists" in again.stderr) == (2, True)
    assert nothing_left(lab)


def test_more_than_are_allowed_change_nothing_and_leave_no_file(lab: Lab) -> None:
    planted(lab)
    done = into(lab, "--table", "u", "--rejects", lab.folder / "bad.jsonl", "--max-rejects", "3")
    assert (done.returncode, "more than 3 rows cannot be loaded" in done.stderr) == (2, True)
    assert not (lab.folder / "bad.jsonl").exists()
    assert lab.rows("select count(*) from u") == [(0,)]
    assert nothing_left(lab)


def test_a_merge_rejects_rows_that_cannot_be_read_changed_or_added(lab: Lab) -> None:
    planted(lab)
    lab.run(
        "delete from t where id = 5 and ip <> '10.0.0.5'",
        "insert into u select g, null, 3 from generate_series(1, 2990) g",
    )
    lab.out = lab.folder / "again"
    lab.moved("--table", "t")
    words = (
        "--table",
        "u",
        "--mode",
        "merge",
        "--key",
        "id",
        "--rejects",
        lab.folder / "bad.jsonl",
        "--verify",
        "target",
    )
    done = into(lab, *words)
    assert done.returncode == 1, done.stderr
    assert {one["values"]["id"] for one in rejected(lab)} == {1234, 2500, 2999}
    assert "9 rows added, 2,987 changed, 0 the same" in done.stdout
    assert lab.rows("select count(*) from u where ip is null") == [(3,)], "1234, 2000 and 2500 are as they were"


def test_values_that_no_message_can_carry_are_rejected_before_they_are_staged(lab: Lab) -> None:
    lab.write("select range::int as id, case when range = 3 then 'a' || chr(0) else 'b' end as x from range(6)")
    lab.run("create table u (id int, x text)")
    refused = into(lab, "--table", "u")
    assert (refused.returncode, "NUL character" in refused.stderr, "row 4" in refused.stderr) == (2, True, True)
    done = into(lab, "--table", "u", "--rejects", lab.folder / "bad.jsonl")
    assert (done.returncode, rejected(lab)[0]["row"]) == (1, 4), done.stderr
    assert lab.rows("select count(*) from u") == [(5,)]


def test_a_column_named_as_the_staged_rows_are_in_our_statements(lab: Lab) -> None:
    """Regression: a column `s` was confused with the alias of the staged rows, and the load failed with "cannot delete
    from scalar"."""
    lab.run(
        "create table t as select g id, g % 7 s, 'x' t, 'y' u, g f, g n, g r, g d from generate_series(1, 300) g",
        "create table u (id int primary key, s int check (s < 7 and id <> 33), t text, u text)",
        "alter table u add f int, add n int, add r int, add d int",
    )
    lab.moved("--table", "t")
    refused = into(lab, "--table", "u")
    assert (refused.returncode, "next: repair the rows or the table" in refused.stderr) == (
        2,
        True,
    )
    assert "--rejects" in refused.stderr, "it was told to try the SQL in psql"
    done = into(lab, "--table", "u", "--rejects", lab.folder / "bad.jsonl")
    assert (done.returncode, "1 row rejected" in done.stdout) == (1, True), done.stderr
    assert rejected(lab)[0]["values"] == {"id": 33, "s": 5, "t": "x", "u": "y"} | dict.fromkeys("fnrd", 33)
    for mode in (("merge", "--key", "id"), ("update", "--key", "id"), ("replace", "--verify", "target")):
        again = into(lab, "--table", "u", "--mode", *mode, "--rejects", lab.folder / f"{mode[0]}.jsonl")
        assert again.returncode == (0 if mode[0] == "update" else 1), (mode, again.stderr)
    assert lab.rows("select count(*), sum(s) from u") == lab.rows("select count(*), sum(s) from t where id <> 33")
