"""Tests of loads into MariaDB: bad rows go to a file, rows are compared before the commit, and a kill leaves all rows
or none."""

from __future__ import annotations

import json
import random
import subprocess
import time
from typing import Any

import pytest
from move_lab import started
from pymysql.err import IntegrityError
from test_move_mariadb import Maria

from command_line import dbdyno
from mariadb_server import missing
from soaked import first

pytestmark = [
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.xdist_group("move_mariadb"),
]


def into(maria: Maria, *words: object) -> subprocess.CompletedProcess[str]:
    """Load the files of `out` into a table."""
    return dbdyno("move", maria.out, "--to", maria.url, *words)


def left(maria: Maria) -> list[str]:
    """Return the tables that dbdyno left behind."""
    return [row[0] for row in maria.ask("show tables") if row[0].startswith("dbdyno_move")]


BAD = {
    3: "Duplicate entry",
    7: "Out of range",
    11: "`small` failed",
    90: "Column 'x' cannot be null",
    91: "no thirteen",
}


def test_bad_rows_go_to_a_file_with_reason_and_place_and_the_others_in(maria: Maria) -> None:
    maria.run(
        "create table t as select g id, case when g <> 90 then 'x' || g end x,"
        " case g when 7 then 70000 when 11 then 900 when 50 then 'NaN' else g::double precision end n"
        " from generate_series(1, 100) g",
    )
    assert maria.move("--table", "t").returncode == 0
    maria.do(
        "create table u (id int primary key, x varchar(9) not null, n smallint, constraint small check (n < 500))",
        "create trigger u_13 before insert on u for each row if new.id = 91 then"
        " signal sqlstate '45000' set message_text = 'no thirteen'; end if",
        "insert into u values (3, 'old', 3)",
    )
    plain = into(maria, "--table", "u")
    assert (plain.returncode, "not finite" in plain.stderr) == (2, True), plain.stderr
    bad = maria.folder / "bad.jsonl"
    done = into(maria, "--table", "u", "--rejects", bad, "--verify", "target")
    assert (done.returncode, "read again" in done.stderr or "some rows were" in done.stderr) == (2, True), done.stderr
    assert not bad.exists()
    done = into(maria, "--table", "u", "--rejects", bad)
    assert done.returncode == 1, done.stderr
    assert "94 rows added" in done.stdout
    assert "6 rows rejected" in done.stdout
    told = {row["row"]: row for row in map(json.loads, bad.read_text().splitlines())}
    assert told.keys() == {*BAD, 50}
    assert all(said in told[row]["reason"] for row, said in BAD.items()), told
    assert "not finite" in told[50]["reason"]
    assert (told[3]["code"], told[3]["values"]["x"], told[3]["file"]) == ("1062", "x3", "part-00000.parquet")
    assert maria.ask("select count(*), max(x = 'old') from u") == [(95, 1)]
    assert left(maria) == []


@pytest.mark.parametrize("source", first("postgresql", "mariadb"))
def test_bad_rows_of_a_server_are_rejected_by_their_chunk_and_place_in_it(maria: Maria, source: str) -> None:
    wrong = "case g when 7 then 70000 when 350 then 900 else 1 end"
    if source == "mariadb":
        maria.do(
            f"create table t (g int primary key, x varchar(9), n double) select g, 'x' x, {wrong} n"
            " from (select seq g from seq_1_to_400) s"
        )
    else:
        nan = wrong.replace("when 7", "when 50 then float8 'NaN' when 7")
        maria.run(
            f"create table t as select g, 'x'::text x, ({nan})::double precision n from generate_series(1, 400) g"
        )
    maria.do("create table u (g int primary key, x varchar(9), n smallint, constraint small check (n < 500))")
    bad, job = maria.folder / "bad.jsonl", maria.folder / "job"
    words = ("--table", "t", "--into", "u", "--to", maria.url, "--piece", "8KiB", "--rejects", bad)
    done = dbdyno("move", maria.url if source == "mariadb" else maria.dsn, *words, "--job", job)
    told = [json.loads(line) for line in bad.read_text().splitlines()]
    wanted = 2 + (source == "postgresql")
    assert (done.returncode, f"{wanted} rows rejected" in done.stdout) == (1, True), done.stderr
    assert len({(one["file"], one["row"]) for one in told}) == wanted
    assert {one["file"].split()[0] for one in told} == {"chunk"}
    reasons = " ".join(one["reason"] for one in told)
    assert all(said in reasons for said in ("Out of range", "`small` failed", *(["not finite"] * (wanted == 3)))), told
    assert maria.ask("select count(*) from u") == [(400 - wanted,)]
    assert left(maria) == []


def test_more_than_are_allowed_change_nothing_and_leave_no_file(maria: Maria) -> None:
    maria.run("create table t as select g id, g::text x from generate_series(1, 200) g")
    assert maria.move("--table", "t").returncode == 0
    maria.do("create table u (id int primary key, x varchar(2))", "insert into u values (500, 'a')")
    bad = maria.folder / "bad.jsonl"
    done = into(maria, "--table", "u", "--mode", "replace", "--rejects", bad, "--max-rejects", "20")
    assert (done.returncode, "more than 20 rows cannot be loaded; the table was not changed" in done.stderr) == (
        2,
        True,
    )
    assert "part-00000.parquet row 100: Data too long for column 'x'" in done.stderr
    assert (bad.exists(), maria.ask("select * from u"), left(maria)) == (False, [(500, "a")], [])


def test_a_merge_rejects_rows_that_cannot_be_changed_or_added(maria: Maria) -> None:
    maria.run("create table t as select g id, repeat('y', g % 3 + 1) x from generate_series(1, 12) g")
    assert maria.move("--table", "t").returncode == 0
    maria.do(
        "create table u (id int primary key, x varchar(2))",
        "insert into u values (1, 'a'), (2, 'a'), (3, 'y'), (4, 'yy')",
    )
    bad = maria.folder / "bad.jsonl"
    done = into(maria, "--table", "u", "--mode", "merge", "--key", "id", "--rejects", bad, "--verify", "target")
    assert done.returncode == 1, done.stderr
    assert "5 rows added, 1 changed, 2 the same" in done.stdout
    assert {json.loads(row)["row"] for row in bad.read_text().splitlines()} == {2, 5, 8, 11}
    assert "the table, read before the commit, contains exactly what was sent" in done.stdout
    assert maria.ask("select group_concat(id, x order by id) from u") == [("1yy,2a,3y,4yy,6y,7yy,9y,10yy,12y",)]


def sees_nulls_beside_triggers(maria: Maria) -> bool:
    """Return True if the server has the fault of 11.4.5: values are missing in statements that name columns of a table
    with a BEFORE trigger."""
    try:
        maria.do("insert into u (id, note) select seq, 'x' from seq_1_to_3")
    except IntegrityError:
        return True
    maria.do("delete from u")
    return False


def test_a_null_that_a_trigger_makes_is_told_from_one_that_came(maria: Maria) -> None:
    maria.run("create table t as select g id, 'x'::text note from generate_series(1, 9) g")
    assert maria.move("--table", "t").returncode == 0
    maria.do(
        "create table u (id int primary key, note varchar(9) not null)",
        "create trigger `makes null` before insert on u for each row if new.id = 7 then set new.note = null; end if",
    )
    made = into(maria, "--table", "u")
    assert (made.returncode, maria.ask("select count(*) from u"), left(maria)) == (2, [(0,)], [])
    assert (
        "cannot be null, but none of the loaded rows has NULL there: a trigger produced it: makes null"
    ) in made.stderr
    maria.do("drop trigger `makes null`")
    assert into(maria, "--table", "u").returncode == 0
    maria.run(
        "drop table t",
        "create table t as select g id, nullif('x', repeat('x', g % 3)) note from generate_series(1, 9) g",
    )
    maria.out = maria.folder / "with nulls"
    assert maria.move("--table", "t").returncode == 0
    maria.do("create trigger other before insert on u for each row if new.id = 70 then set new.note = 'y'; end if")
    came = into(maria, "--table", "u", "--mode", "replace")
    assert (came.returncode, "cannot be null" in came.stderr, "none of the loaded rows" in came.stderr) == (
        2,
        True,
        False,
    )


def test_a_trigger_that_alters_rows_is_found_by_verify_target(maria: Maria) -> None:
    maria.run("create table t as select g id, 'x'::text note from generate_series(1, 50) g")
    assert maria.move("--table", "t").returncode == 0
    maria.do(
        "create table u (id int primary key, note text)",
        "create table plain (id int, note text)",
        "create trigger alters before insert on u for each row if new.id = 7 then set new.note = 'other'; end if",
        "create trigger alters_plain before insert on plain for each row if new.id = 7 then set new.note = 'X'; end if",
    )
    if sees_nulls_beside_triggers(maria):
        done = into(maria, "--table", "u", "--verify", "target")
        assert (done.returncode, "a trigger produced it: alters" in done.stderr) == (2, True), done.stderr
        pytest.skip("this server refuses every INSERT ... SELECT into a table with a BEFORE trigger")
    for words in (("--table", "u"), ("--table", "u", "--mode", "replace"), ("--table", "plain", "--mode", "replace")):
        done = into(maria, *words, "--verify", "target")
        assert (done.returncode, "would differ from the loaded rows" in done.stderr) == (2, True), (words, done.stderr)
    done = into(maria, "--table", "plain", "--verify", "target")
    assert (done.returncode, "no unique key by which rows can be found" in done.stderr) == (2, True)
    assert maria.ask("select (select count(*) from u) + (select count(*) from plain)") == [(0,)]
    maria.do("drop trigger alters", "drop trigger alters_plain", "insert into u values (90, 'old')")
    for words in (("--table", "u"), ("--table", "u", "--mode", "replace"), ("--table", "plain", "--mode", "replace")):
        done = into(maria, *words, "--verify", "target")
        assert (done.returncode, "read before the commit, contains exactly what was sent" in done.stdout) == (
            0,
            True,
        ), (
            words,
            done.stderr,
        )
    assert left(maria) == []
    refused = into(maria, "--table", "u", "--defer-indexes")
    assert (refused.returncode, "commits at each change of an index" in refused.stderr) == (2, True)


@pytest.mark.parametrize("kills", [1, pytest.param(40, marks=pytest.mark.soak)])
def test_kills_at_random_instants_leave_all_or_nothing(maria: Maria, kills: int) -> None:
    """Kill loads of files, and jobs from server to server, which are resumed afterwards."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    maria.do(
        "create table t (id int primary key, x varchar(40))",
        "insert into t select seq, md5(seq) from seq_1_to_30000",
        "create table u like t",
        "create table v like t",
    )
    assert maria.out_of("--table", "t", "--piece", "128KiB").returncode == 0
    job = maria.folder / "job"
    load = [maria.out, "--to", maria.url, "--table", "u", "--mode", "replace"]
    first = [maria.url, "--to", maria.url, "--job", job, "--table", "t", "--into", "v", "--rate-limit", "2MB/s"]
    resumed: list[Any] = ["resume", job, "--source", maria.url, "--to", maria.url, "--restart"]
    across: list[Any] = first
    for _ in range(kills):
        for command, table in ((load, "u"), (across, "v")):
            _killed(maria, command, rng.random() * 0.6)
            found = maria.ask(f"select count(*), count(distinct x) from {table}")
            assert found in ([(0, 0)], [(30000, 30000)]), (seed, command, found)
        if (job / "_dbdyno" / "manifest.json").exists():
            across = resumed if rng.random() < 0.5 else [*resumed[:-1], "--as-of-now"]
    assert dbdyno("move", *load).returncode == 0
    done = dbdyno("move", *(across if across is first else [*resumed[:-1], "--as-of-now"]))
    assert done.returncode == 0 or "the job is complete" in done.stderr, done.stderr
    assert maria.same("t", "u")
    assert maria.same("t", "v")


def _killed(maria: Maria, command: list[Any], after_s: float) -> None:
    """Run a command and kill it some time after it has created its first staging table."""
    before = set(left(maria))
    process = started(*command)
    while process.is_alive() and set(left(maria)) <= before:
        time.sleep(0.01)
    process.join(after_s)
    process.kill()
    process.join()
