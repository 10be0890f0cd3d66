"""Tests that a move is exact while others write: partitions, views, names, conditions; every row once, no other."""

from __future__ import annotations

import contextlib
import threading
from functools import partial
from typing import Any

import duckdb
import psycopg
import pytest
from move_lab import Lab

from command_line import dbdyno
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres import source
from together import meanwhile

ACCOUNTS = 4_000


def test_the_sum_is_0_while_two_sessions_move_money(lab: Lab) -> None:
    """Updates move rows within the file during the read; without a single snapshot the sum would not be 0."""
    lab.run(
        "create table account (id int primary key, amount bigint not null, pad text default repeat('x', 80))",
        f"insert into account select g, 0 from generate_series(1, {ACCOUNTS}) g",
    )
    moved = [0, 0]

    def writer(place: int, stop: threading.Event) -> None:
        with lab.connect() as conn:
            while not stop.wait(0.001):
                conn.execute(
                    "with pick as (select (random() * %s)::int + 1 a, (random() * %s)::int + 1 b,"
                    " (random() * 100)::int m) update account set amount = amount + case when id = a then -m else m end"
                    " from pick where a <> b and id in (a, b) and a <= %s and b <= %s",
                    [ACCOUNTS - 1, ACCOUNTS - 1, ACCOUNTS, ACCOUNTS],
                )
                moved[place] += 1

    with meanwhile(partial(writer, 0), partial(writer, 1)):
        for turn in range(3):
            lab.out = lab.folder / f"out{turn}"
            before = sum(moved)
            lab.moved("--table", "account", "--piece", "16KiB", "--workers", "3", "--verify", "source")
            assert lab.files("sum(amount), count(*), count(distinct id)") == [(0, ACCOUNTS, ACCOUNTS)]
            assert sum(moved) > before, "they wrote meanwhile"


def test_partitions_and_children_are_read_one_by_one(lab: Lab) -> None:
    lab.run(
        "create table p (id int, day date) partition by range (day)",
        "create table p1 partition of p for values from ('2020-01-01') to ('2021-01-01')",
        "create table p2 (day date, id int) partition by list (id)",
        "alter table p attach partition p2 for values from ('2021-01-01') to ('2022-01-01')",
        "create table p2a partition of p2 default",
        "insert into p select g, '2020-06-01'::date + g from generate_series(1, 400) g",
        "create table mother (id int)",
        "create table child (more text) inherits (mother)",
        "insert into mother values (1), (2)",
        "insert into child values (3, 'x')",
    )
    lab.moved("--table", "p", "--where", "id % 2 = 0")
    assert lab.files("id, day::varchar", "order by id") == lab.rows(
        "select id, day::text from p where id % 2 = 0 order by id"
    )
    lab.out = lab.folder / "mother"
    lab.moved("--table", "mother")
    assert lab.files("*", "order by 1") == [(1,), (2,), (3,)]


@pytest.mark.parametrize("words", [("--table", "mv"), ("--table", "v"), ("--query", "select id from mv")])
def test_a_view_that_is_refreshed_as_the_snapshot_is_taken_is_taken_again(
    lab: Lab, words: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refresh fills a new file that older snapshots see too, so such a snapshot shows no single instant and is taken
    again."""
    lab.run(
        "create table t as select 1 as id",
        "create materialized view mv as select id from t",
        "create view v as select id from mv",
    )
    target, tries = Postgres(lab.engine.conninfo()), []
    begun = source._query if words[0] == "--query" else source._table

    def late(*given: Any) -> Any:
        tries.append(given)
        if len(tries) == 1:  # the snapshot is there, the lock is not
            lab.run("insert into t values (2)", "refresh materialized view mv")
        return begun(*given)

    monkeypatch.setattr(source, begun.__name__, late)
    request = source.Request(query=words[1]) if words[0] == "--query" else source.Request(tables=[words[1]])
    with source.take_snapshot(target, request, "job") as snapshot:
        assert len(tries) == 2
        assert snapshot.conn.execute("select count(*) from t").fetchone() == (2,), "the snapshot is the later one"
        with lab.connect() as conn, pytest.raises(psycopg.errors.LockNotAvailable):
            conn.execute("set lock_timeout = '100ms'")
            conn.execute("refresh materialized view mv")


def test_views_and_queries_are_one_stream_and_said_to_be(lab: Lab) -> None:
    lab.run(
        "create table t as select g id, g * 1.5 as x from generate_series(1, 100) g",
        "create view v as select id, x::numeric(10,1) from t where id > 10",
        "create materialized view mv as select id from t",
    )
    done = lab.move("--table", "v", "--where", "id < 20 -- all of them")
    assert (done.returncode, len(lab.files())) == (0, 9), done.stderr
    assert "public.v: one stream, because a view has no blocks to split by" in done.stderr
    lab.out = lab.folder / "query"
    done = lab.moved("--query", "select id, 'a{}b' as \"odd name\", '%s' as p from t where id <= 3 -- few\n;")
    assert lab.files("*", "order by id") == [(n, "a{}b", "%s") for n in (1, 2, 3)]
    assert "the query: one stream, because a query has no blocks" in done.stderr
    lab.out = lab.folder / "mv"
    lab.moved("--table", "mv")
    assert len(lab.files()) == 100


def test_names_may_be_anything(lab: Lab) -> None:
    lab.run(
        'create schema "odd.schema"',
        'create table "odd.schema"."a ""b"" / c" ("it\'s %s {x}" int, "select" text)',
        'insert into "odd.schema"."a ""b"" / c" values (1, \'x\')',
        "create table plain (id int)",
        "insert into plain values (7)",
    )
    lab.moved("--tables", "odd.schema.*", "--table", "plain")
    assert lab.files('"it\'s %s {x}", "select"', pattern="odd*/*.parquet") == [(1, "x")]
    assert lab.files(pattern="public.plain/*.parquet") == [(7,)]
    lab.run('drop schema "odd.schema" cascade')


def test_no_rows_and_1600_columns(lab: Lab) -> None:
    lab.run("create table t (id int, x text)", f"create table wide ({', '.join(f'c{n} int' for n in range(1600))})")
    lab.moved("--table", "t", "--verify", "source")
    assert lab.files() == []
    lab.out = lab.folder / "wide"
    lab.run("insert into wide (c0, c1599) values (1, 2)")
    lab.moved("--table", "wide")
    assert lab.files("c0, c1, c1599") == [(1, None, 2)]
    # zstd's contexts, one for each column, would take more than the memory that was allowed.
    with contextlib.closing(duckdb.connect()) as conn:
        codecs = f"select distinct compression from parquet_metadata('{lab.folder}/*/*.parquet')"
        assert conn.execute(codecs).fetchall() == [("SNAPPY",)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--table", "nowhere"), "there is no such table"),
        (("--table", "a.b.c.d"), "is not a table name"),
        (("--table", "t", "--columns", "id,nope"), "has no column 'nope'"),
        (("--table", "t", "--where", "nope = 1"), 'column "nope" does not exist'),
        (("--table", "t", "--where", "id = 1) or (true"), "no matching opening bracket"),
        (("--query", "select 1 as a, 2 as a"), "two columns are named 'a'"),
        (("--query", "delete from t"), "syntax error"),
        (("--query", "with x as (delete from t returning id) select * from x"), "WITH clause"),
        (("--tables", "none.*"), "no table matches"),
        ((), "name what to move"),
        (("--table", "t", "--query", "select 1"), "--query excludes --table"),
        (("--table", "t", "--memory", "lots"), "is not a size"),
    ],
)
def test_what_cannot_be_moved_is_one_clear_error(lab: Lab, words: tuple[str, ...], said: str) -> None:
    lab.run("create table t (id int)", "insert into t values (1)")
    done = lab.move(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert lab.rows("select count(*) from t") == [(1,)]


def test_an_error_in_the_middle_names_the_chunk_and_the_next_step(lab: Lab) -> None:
    lab.run("create table t as select g id from generate_series(1, 5000) g")
    done = lab.move("--table", "t", "--piece", "8KiB", "--where", "1 / (id - 4000) < 9")
    assert done.returncode == 2
    assert "division by zero" in done.stderr
    assert "chunk" in done.stderr
    assert f"dbdyno move resume {lab.out}" in done.stderr
    assert not list(lab.out.glob(".*tmp"))


def test_rows_that_a_policy_hides_are_an_error_not_a_gap(lab: Lab) -> None:
    lab.run(
        "create table t (id int)",
        "insert into t values (1), (2)",
        "alter table t enable row level security",
        "create policy one on t using (id = 1)",
        "drop role if exists mover",
        "create role mover login",
        "grant usage on schema public to mover",
        "grant select on t to mover",
    )
    host = lab.engine.conninfo()
    dsn = psycopg.conninfo.make_conninfo("", **{**host, "options": "-c role=mover"})
    done = dbdyno("move", dsn, "--table", "t", "--to", lab.out)
    assert done.returncode == 2
    assert "row-level security" in done.stderr
    lab.run("drop schema public cascade", "drop role mover", "create schema public")


def test_a_dry_run_shows_the_plan_and_writes_nothing(lab: Lab) -> None:
    lab.run("create table t (id int, n numeric(5,2), ip inet)")
    done = lab.moved("--table", "t", "--dry-run", "--where", "id > 3")
    assert "n: numeric(5,2) -> decimal(5,2)" in done.stdout
    assert "ip: inet -> text, in words" in done.stdout
    assert "(id > 3\n)" in done.stdout
    assert not lab.out.exists()
