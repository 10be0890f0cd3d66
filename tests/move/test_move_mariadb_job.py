"""Tests of jobs into MariaDB: files with a ledger, several tables in one transaction, and the dry run."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from move_lab import started
from test_move_mariadb import Maria
from test_move_mariadb_in import left

from command_line import checked, dbdyno, succeeded
from dbdyno.move.ledger.folder import Ledger
from mariadb_server import missing
from waiting import until

pytestmark = [
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.xdist_group("move_mariadb"),
]
NUMBERS = (
    "create table t (id int primary key, k int, x varchar(40))",
    "insert into t select seq, seq % 7, md5(seq) from seq_1_to_20000",
    "create table u like t",
    "analyze table t",
)


def files(maria: Maria) -> None:
    """Export a table to several files."""
    maria.do(*NUMBERS)
    assert maria.out_of("--table", "t", "--piece", "512KiB").returncode == 0


def load(maria: Maria, *words: object) -> subprocess.CompletedProcess[str]:
    """Load the files of `out` into `u`, with a ledger."""
    return dbdyno("move", maria.out, "--to", maria.url, "--table", "u", "--job", maria.folder / "job", *words)


def go_on(maria: Maria, *words: object) -> subprocess.CompletedProcess[str]:
    """Resume the job."""
    return dbdyno("move", "resume", maria.folder / "job", "--to", maria.url, *words)


def test_files_go_in_by_a_job_and_what_was_staged_is_not_read_again(maria: Maria) -> None:
    files(maria)
    maria.do("alter table u add constraint few check (id < 19999)")
    refused = load(maria, "--mode", "merge", "--key", "id")
    assert (refused.returncode, "`few` failed" in refused.stderr) == (2, True), refused.stderr
    assert f"`dbdyno move resume {maria.folder / 'job'} --target mariadb://...`" in refused.stderr
    assert "dbdyno move resume" in dbdyno("move", "status", maria.folder / "job").stdout
    staged = {number: one["ended_ns"] for number, one in Ledger.open(maria.folder / "job").records().items()}
    assert len(staged) > 1
    maria.do("alter table u drop constraint few")
    done = checked(go_on(maria, "--verify", "target"))
    assert "20,000 rows added, 0 changed" in done.stdout
    assert "the files contain what the job that wrote them had read" in done.stdout
    assert "the staged rows, read again from the server, were those of the files" in done.stdout
    assert {number: one["ended_ns"] for number, one in Ledger.open(maria.folder / "job").records().items()} == staged
    assert maria.same("t", "u")
    assert left(maria) == []
    again = go_on(maria)
    assert (again.returncode, "the job is complete" in again.stderr) == (2, True)
    report = json.loads(dbdyno("report", maria.folder / "job", "--format", "json").stdout)
    assert [one["how"] for one in report["attempts"]] == ["begun", "resumed"]
    assert report["job"]["engine"] == "mariadb"
    assert "show processlist" in report["job"]["stop"]


def test_a_file_that_changed_is_loaded_anew(maria: Maria) -> None:
    files(maria)
    maria.do("alter table u add constraint few check (id < 19999)")
    assert load(maria).returncode == 2
    maria.do("alter table u drop constraint few")
    os.utime(sorted(maria.out.glob("*.parquet"))[0], (1, 1))
    refused = go_on(maria)
    assert (refused.returncode, "has changed since the job began" in refused.stderr) == (2, True)
    assert go_on(maria, "--restart").returncode == 0
    assert maria.same("t", "u")
    assert left(maria) == []


def test_rejected_rows_of_a_job_are_named_by_file_and_row(maria: Maria) -> None:
    files(maria)
    maria.do("alter table u add constraint odd check (id <> 7777)")
    bad = maria.folder / "bad.jsonl"
    done = load(maria, "--rejects", bad)
    assert (done.returncode, "1 row rejected" in done.stdout) == (1, True), done.stderr
    row = json.loads(bad.read_text())
    assert row["values"]["id"] == 7777
    assert row["file"].endswith(".parquet")
    assert maria.ask("select count(*), sum(id) from u") == [(19_999, 20_000 * 20_001 // 2 - 7777)]


@pytest.mark.parametrize("kills", [1, pytest.param(40, marks=pytest.mark.soak)])
def test_a_kill_of_a_load_at_any_instant_doubles_nothing(maria: Maria, kills: int) -> None:
    files(maria)
    rng = random.Random(seed := random.randrange(1 << 32))
    print(f"seed {seed}")
    job, first = maria.folder / "job", True
    given = ("--to", maria.url, "--rate-limit", "1MB/s")
    for _ in range(kills):
        process = started(*((maria.out, "--table", "u", "--job", job) if first else ("resume", job)), *given)
        until(lambda: not process.is_alive() or left(maria), 60, pause_s=0.01)  # noqa: B023  # used within this turn
        process.join(rng.random() * 0.8)
        process.kill()
        process.join()
        first = not (job / "_dbdyno" / "manifest.json").exists()
        found = maria.ask("select count(*), count(distinct x) from u")
        assert found in ([(0, 0)], [(20000, 20000)]), seed
        if found != [(0, 0)]:
            break
    done = go_on(maria) if not first else load(maria)
    assert done.returncode == 0 or "the job is complete" in done.stderr, done.stderr
    assert maria.same("t", "u")


def test_what_a_load_into_a_mariadb_would_do(maria: Maria) -> None:
    files(maria)
    shown = succeeded(
        "move", maria.out, "--to", maria.url, "--table", "u", "--mode", "merge", "--key", "id", "--dry-run"
    )
    assert "test.u: merge of " in shown.stdout
    assert "20,000 rows" in shown.stdout
    assert "  x: longtext -> varchar(40)" in shown.stdout
    made = dbdyno("move", maria.out, "--to", maria.url, "--table", "w", "--create", "--dry-run")
    assert (made.returncode, "  x: longtext -> varchar(40)" in made.stdout) == (0, True), made.stderr
    for source, to in ((maria.url, maria.url), (maria.url, maria.dsn), (maria.dsn, maria.url)):
        maria.run("drop table if exists t", "create table t (id int, k int, x text)")
        across = dbdyno("move", source, "--to", to, "--table", "t", "--dry-run")
        assert (across.returncode, "into " in across.stdout, "  x: " in across.stdout) == (0, True, True), across.stderr
    nowhere = dbdyno("move", maria.out, "--to", maria.url, "--table", "nowhere", "--dry-run")
    assert (nowhere.returncode, "add --create to make the table" in nowhere.stderr) == (2, True)
    assert maria.ask("select count(*) from u") == [(0,)]
    assert sorted(row[0] for row in maria.ask("show tables")) == ["t", "u"]


FAMILY = (
    "create table z_customer (id int primary key, name varchar(40) not null)",
    "create table a_line (id int primary key, customer int, foreign key (customer) references z_customer (id))",
    "insert into z_customer select seq, md5(seq) from seq_1_to_300",
    "insert into a_line select seq, seq % 300 + 1 from seq_1_to_5000",
    "create database copy",
    "create table copy.z_customer like z_customer",
    "create table copy.a_line (id int primary key, customer int, foreign key (customer) references z_customer (id))",
)


@pytest.fixture
def family(maria: Maria) -> Iterator[Maria]:
    """Create two tables with a foreign key, and two tables for their rows."""
    maria.do("drop database if exists copy", *FAMILY)
    try:
        yield maria
    finally:
        maria.do("drop database copy", "drop table a_line", "drop table z_customer")


def several(maria: Maria, source: str, to: str, *words: object, job: str = "job") -> Any:
    """Move all tables of a schema."""
    return dbdyno("move", source, "--to", to, "--job", maria.folder / job, *words)


def arrived(maria: Maria, place: str = "copy") -> bool:
    """Return True if both tables arrived unchanged."""
    ask = "select count(*), sum(id) from {}.{}"
    each = ("z_customer", "a_line")
    return all(maria.ask(ask.format(place, name)) == maria.ask(ask.format("test", name)) for name in each)


def test_several_tables_of_a_mariadb_go_to_another_in_one_transaction(family: Maria) -> None:
    words = ("--tables", "test.*", "--into", "copy.*", "--mode", "replace")
    done = checked(several(family, family.url, family.url, *words, "--verify", "target"))
    assert "2 tables in one transaction" in done.stdout
    assert "copy.z_customer: the table emptied and 300 rows added" in done.stdout
    assert arrived(family)
    # Once more, over rows that refer to each other.
    assert several(family, family.url, family.url, *words, job="again").returncode == 0
    assert arrived(family)
    family.do("delete from copy.a_line where id = 5", "alter table copy.a_line add constraint odd check (id <> 5)")
    refused = several(family, family.url, family.url, *words, job="refused")
    assert (refused.returncode, "`odd` failed" in refused.stderr) == (2, True), refused.stderr
    counts = "select (select count(*) from copy.a_line), (select count(*) from copy.z_customer)"
    assert family.ask(counts) == [(4999, 300)], "a transaction that fails leaves all of them as they were"
    family.do("alter table copy.a_line drop constraint odd")
    succeeded("move", "resume", family.folder / "refused", "--source", family.url, "--to", family.url)
    assert arrived(family)
    assert [row for row in family.ask("show tables from copy") if row[0].startswith("dbdyno")] == []


def test_several_tables_go_from_mariadb_to_postgresql_and_home(family: Maria) -> None:
    family.run("drop schema if exists test cascade", "create schema test")
    there = checked(several(family, family.url, family.dsn, "--tables", "test.*", "--create"))
    assert "2 tables in one transaction" in there.stdout
    assert family.rows("select count(*), sum(id) from test.a_line") == family.ask(
        "select count(*), sum(id) from a_line"
    )
    bad = family.folder / "bad.jsonl"
    family.do("alter table copy.a_line add constraint odd check (id <> 5)")
    words = ("--tables", "test.*", "--into", "copy.*", "--rejects", bad)
    home = several(family, family.dsn, family.url, *words, job="home")
    assert (home.returncode, "1 row rejected" in home.stdout) == (1, True), home.stderr
    assert [json.loads(line)["values"]["id"] for line in bad.read_text().splitlines()] == [5]
    assert family.ask("select count(*) from copy.a_line") == [(4999,)]
    family.run("drop schema test cascade")


def test_tables_are_made_or_none_is(family: Maria) -> None:
    family.do("drop table copy.a_line", "drop table copy.z_customer", "create table copy.z_customer (id int)")
    words = ("--tables", "test.*", "--into", "copy.*", "--create")
    refused = several(family, family.url, family.url, *words)
    assert (refused.returncode, "already exists" in refused.stderr) == (2, True), refused.stderr
    assert [row[0] for row in family.ask("show tables from copy")] == ["z_customer"]
    assert not (family.folder / "job").exists()
    family.do("drop table copy.z_customer")
    checked(several(family, family.url, family.url, *words))
    assert arrived(family)
    two = several(family, family.url, family.url, "--tables", "*.a_line", "--into", "copy.*", job="two")
    assert (two.returncode, "two source tables would be loaded into this table" in two.stderr) == (2, True), two.stderr


def test_a_job_from_postgresql_into_a_mariadb_goes_on_in_its_types(maria: Maria) -> None:
    """Regression: `resume` read the staged rows as PostgreSQL's and reported them as altered."""
    maria.run("create table t as select g id, g / 8.0::float8 f, md5(g::text) x from generate_series(1, 20000) g")
    maria.do("create table u (id int primary key, f double, x varchar(40), check (id <> 20000))")
    job = maria.folder / "job"
    for how in ("--restart", "--as-of-now"):
        begun = dbdyno(
            *("move", maria.dsn, "--to", maria.url, "--table", "t", "--into", "u", "--job", job, "--piece", "256KiB")
        )
        assert (begun.returncode, "dbdyno move resume" in begun.stderr) == (2, True), begun.stderr
        chunks = sorted((job / "_dbdyno" / "chunks").glob("*.json"))
        assert len(chunks) > 1
        chunks[-1].unlink()
        maria.run("delete from t where id = 20000")
        succeeded("move", "resume", job, "--source", maria.dsn, "--to", maria.url, how)
        assert maria.ask("select count(*), sum(id), sum(f) from u") == [
            (19999, 19999 * 20000 // 2, 19999 * 20000 / 2 / 8)
        ]
        maria.run("insert into t values (20000, 1, 'x')")
        maria.do("truncate u")
        job = maria.folder / "second"
