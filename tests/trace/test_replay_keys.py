"""A replay changes keys that the server made anew, and no other value: the same tables as the capture left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from proxy_help import pgbench, place, proxied
from psycopg.conninfo import make_conninfo
from record_help import session

from command_line import dbdyno
from dbdyno.bench.postgres.embedded import EmbeddedPostgres

LINES = (
    "create table account (id int primary key, v bigint not null)",
    "insert into account select i, 0 from generate_series(1, 100) i",
    "create table line (id serial primary key, account int not null, v int not null, seen int default 0)",
)
ORDER = r"""
\set account random(1, 100)
\set v random(1, 100)
insert into line (account, v) values (:account, :v) returning id \gset
select v from line where id = :id;
update account set v = v + :v where id = :account;
update line set seen = seen + :v where id = :id;
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres() as running:
        yield running


def made(engine: EmbeddedPostgres, name: str, *statements: str) -> dict[str, Any]:
    """A new database with what these statements make."""
    with session(engine) as own:
        own.execute(f'drop database if exists "{name}"')
        own.execute(f'create database "{name}"')
    where = {**engine.conninfo(), "dbname": name}
    with psycopg.connect(**where, autocommit=True) as own:
        for statement in statements:
            own.execute(statement)
    return where


def asked(where: dict[str, Any], question: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(**where, autocommit=True) as connection:
        return connection.execute(question).fetchall()


def replayed(run: Path, copy: dict[str, Any], *words: str) -> dict[str, Any]:
    """The report of a replay that may write, as fast as it can."""
    options = ("--writes", "--speed", "max", "--format", "json", *words)
    done = dbdyno("trace", "replay", run, "--target", make_conninfo("", **copy), *options)
    assert done.returncode in (0, 1), done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("protocol", ["prepared", "extended", "simple"])
def test_four_sessions_whose_numbers_look_like_keys_leave_the_same_sums(
    engine: EmbeddedPostgres, tmp_path: Path, protocol: str
) -> None:
    """Sums of a column that is no key were others: its numbers, 1 to 100, were replaced where a key had them."""
    first = made(engine, "first", *LINES)
    copy = made(engine, "copy", *LINES, "select setval('line_id_seq', 37)")
    script = tmp_path / "order.sql"
    script.write_text(ORDER)
    with proxied(engine, tmp_path / "run", binds=True) as it:
        where = {**place(engine, it), "dbname": "first"}
        pgbench(engine, where, "-n", "-M", protocol, "-f", script, "-c", 4, "-j", 2, "-t", 50, "--random-seed", 42)
    told = replayed(tmp_path / "run", copy)
    sums = "select (select sum(v) from account), count(*), sum(v), sum(seen), sum(account) from line"
    assert asked(copy, sums) == asked(first, sums)
    assert asked(copy, "select count(*) from line where v <> seen") == [(0,)], "each key is that of its own row"
    assert told["ids"] == 200
