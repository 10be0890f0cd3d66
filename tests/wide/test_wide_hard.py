"""Hard cases on a real Cassandra: a partition of a million rows, tombstones, blobs, a node that does not answer, a
keyspace that changes in the meantime.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from wide_lab import WideLab

from command_line import dbdyno, succeeded
from dbdyno.base.errors import WideError
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.wide import address
from dbdyno.wide.answer import Answer
from dbdyno.wide.file import read

pytestmark = pytest.mark.soak
CHILDREN = 1_000_000


def mapped(lab: WideLab, folder: Path, name: str) -> Path:
    succeeded("wide", "map", lab.dsn, "--name", f"{name}=kids,parents", "-o", folder / "map.toml")
    return folder / "map.toml"


def asked(lab: WideLab, map_file: Path, query: str, *more: str) -> str:
    done = succeeded("wide", "sql", query, "--map", str(map_file), "--target", lab.dsn, "--format", "csv", *more)
    return done.stdout


def test_a_parent_of_a_million_children_is_loaded_read_and_counted(wide_lab: WideLab, tmp_path: Path) -> None:
    rows = f"select 1 as id, 'Ada' as name, n, n % 1000 as amount from generate_series(1, {CHILDREN}) n"
    with EmbeddedPostgres() as running:
        dsn = make_conninfo("", **running.conninfo())
        given = ["--query", rows, "--table", "big", "--key", "id", "--cluster", "n", "--static", "name", "--create"]
        done = dbdyno("move", dsn, *given, "--to", wide_lab.dsn, "--job", str(tmp_path / "job"), "--direct")
    assert done.returncode == 0, done.stderr
    assert f"{CHILDREN:,} rows; 1 partitions" in done.stdout
    found = mapped(wide_lab, tmp_path, "big")
    total = sum(n % 1000 for n in range(1, CHILDREN + 1))
    out = asked(wide_lab, found, "select count(*) as n, sum(amount) as total from kids where id = 1")
    assert out.splitlines()[1] == f"{CHILDREN},{total}"
    few = asked(wide_lab, found, f"select n from kids where id = 1 and n > {CHILDREN - 3} order by n")
    assert few.splitlines()[1:] == [str(CHILDREN - 2), str(CHILDREN - 1), str(CHILDREN)]


def test_tombstones_nulls_and_blobs_come_as_they_are(wide_lab: WideLab, tmp_path: Path) -> None:
    wide_lab.run("create table t (id int, n int, s text static, b blob, primary key (id, n))")
    for n in range(2000):
        wide_lab.session.execute("insert into t (id, n, s, b) values (1, %s, 'x', %s)", [n, bytes([n % 256]) * 3])
    wide_lab.run("delete from t where id = 1 and n >= 100; delete b from t where id = 1 and n = 7")
    out = asked(
        wide_lab, mapped(wide_lab, tmp_path, "t"), "select count(*) as n, count(b) as b, max(hex(b)) as m from kids"
    )
    assert out.splitlines()[1] == "100,99,636363"


def test_a_node_that_does_not_answer_ends_the_question_with_a_sentence(
    wide_lab: WideLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide_lab.run("create table t (id int, n int, primary key (id, n)); insert into t (id, n) values (1, 2)")
    file = mapped(wide_lab, tmp_path, "t")
    monkeypatch.setattr(address, "REQUEST_S", 3.0)
    process = wide_lab.node.process
    assert process is not None
    where = address.address(wide_lab.dsn)
    with (
        pytest.raises(WideError, match="a node did not answer within 3 s") as caught,
        Answer(where, read(file), "select * from kids", str(file)) as answer,
    ):
        os.kill(process.pid, signal.SIGSTOP)
        try:
            list(answer.rows())
        finally:
            os.kill(process.pid, signal.SIGCONT)
    assert caught.value.next_step
    assert asked(wide_lab, file, "select n from kids").splitlines() == ["n", "2"]


def test_a_table_that_is_altered_after_its_map_was_written_is_refused_with_the_place(
    wide_lab: WideLab, tmp_path: Path
) -> None:
    wide_lab.run("create table t (id int, n int, v text, primary key (id, n))")
    file = mapped(wide_lab, tmp_path, "t")
    wide_lab.run("alter table t drop v")
    done = dbdyno("wide", "sql", "select * from kids", "--map", str(file), "--target", wide_lab.dsn)
    assert done.returncode == 2
    assert "table.kids.columns.v: 'v' is not a column of a child of t" in done.stderr and "id, n" in done.stderr


def test_a_table_that_is_altered_while_it_is_read_ends_the_question(wide_lab: WideLab, tmp_path: Path) -> None:
    wide_lab.run("create table t (id int, n int, primary key (id, n)); insert into t (id, n) values (1, 2)")
    file = mapped(wide_lab, tmp_path, "t")
    where = address.address(wide_lab.dsn)
    with (
        pytest.raises(WideError, match="table t was altered while it was read"),
        Answer(where, read(file), "select * from kids", str(file)) as answer,
    ):
        wide_lab.run("alter table t add extra int")
        list(answer.rows())


def test_a_node_that_is_silent_at_the_first_word_is_told_with_the_time_that_was_waited(
    wide_lab: WideLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(address, "CONNECT_S", 2.0)
    process = wide_lab.node.process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    try:
        with (
            pytest.raises(WideError, match="a node did not answer within 2 s"),
            address.open_session(address.address(wide_lab.dsn)),
        ):
            pass
    finally:
        os.kill(process.pid, signal.SIGCONT)


def test_no_secret_of_the_source_is_in_the_job(wide_lab: WideLab, tmp_path: Path) -> None:
    with EmbeddedPostgres() as running:
        known = running.tcp_conninfo()
        dsn = make_conninfo("", **known)
        with psycopg.connect(dsn) as conn:
            conn.execute("select 1")
        given = [
            "--query",
            "select 1 as id",
            "--table",
            "one",
            "--key",
            "id",
            "--create",
            "--job",
            str(tmp_path / "job"),
        ]
        done = dbdyno("move", dsn, *given, "--to", wide_lab.dsn)
    assert done.returncode == 0, done.stderr
    secret = str(known["password"]).encode()
    kept = [path for path in (tmp_path / "job").rglob("*") if path.is_file() and secret in path.read_bytes()]
    assert not kept and secret.decode() not in done.stdout + done.stderr
