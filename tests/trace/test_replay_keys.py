"""A replay changes only keys that the server generates again: the tables are the same as after the capture."""

from __future__ import annotations

import json
import os
import random
import secrets
from pathlib import Path

import pytest
from proxy_help import asked, execute, pgbench, place, proxied, through, twins
from psycopg.conninfo import make_conninfo
from random_statements import LEFT, TABLES, Statements

from command_line import dbdyno
from dbdyno.base.json_types import JsonObject
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
CASES, STEPS = 2, 60


def replayed(run: Path, copy: JsonObject, *words: str) -> JsonObject:
    """Return the report of a replay that can write, at maximum speed."""
    options = ("--writes", "--speed", "max", "--format", "json", *words)
    done = dbdyno("trace", "replay", run, "--target", make_conninfo("", **copy), *options)
    assert done.returncode in (0, 1), done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("protocol", ["prepared", "extended", "simple"])
def test_four_sessions_whose_numbers_look_like_keys_leave_the_same_sums(
    engine: EmbeddedPostgres, tmp_path: Path, protocol: str
) -> None:
    """Sums of a column that is not a key were others: its numbers, 1 to 100, were replaced where a key had them."""
    first, copy = twins(engine, "first", *LINES)
    execute(copy, "select setval('line_id_seq', 37)")
    script = tmp_path / "order.sql"
    script.write_text(ORDER)
    with proxied(engine, tmp_path / "run", binds=True) as it:
        where = {**place(engine, it), "dbname": "first"}
        pgbench(engine, where, "-n", "-M", protocol, "-f", script, "-c", 4, "-j", 2, "-t", 50, "--random-seed", 42)
    told = replayed(tmp_path / "run", copy)
    sums = "select (select sum(v) from account), count(*), sum(v), sum(seen), sum(account) from line"
    assert asked(copy, sums) == asked(first, sums)
    assert asked(copy, "select count(*) from line where v <> seen") == [(0,)], "each key is that of its own row"
    assert 100 < told["ids"] <= 200, "some are given the same key as then, by chance"


def test_a_key_that_another_session_makes_is_waited_for(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    """Without think times a session sent the captured key before the other had made its own."""
    first, copy = twins(engine, "shared", *LINES)
    execute(copy, "select setval('line_id_seq', 3)")
    slow = "insert into line (account, v) select 1, %s from pg_sleep(.1) returning id"
    with proxied(engine, tmp_path / "run", binds=True) as it:
        one, other = (through(engine, it, dbname="shared") for _ in range(2))
        for number in range(8):
            [(key,)] = one.execute(slow, [number]).fetchall()
            other.execute("update line set seen = v + 100 where id = %s", [key])
        one.close(), other.close()
    told = replayed(tmp_path / "run", copy)
    question = "select v, seen from line order by v"
    assert asked(copy, question) == asked(first, question)
    assert (told["late_keys"], told["rows_differ"]) == (0, 0)


def test_any_statements_whose_result_is_certain_leave_equal_tables(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    """Property: whatever sequences and random keys give in the copy, its tables are those of the original."""
    seed = int(os.environ.get("DBDYNO_REPLAY_SEED", secrets.randbelow(2**31)))
    print(f"DBDYNO_REPLAY_SEED={seed}")
    for number in range(CASES):
        drawn = random.Random(seed + number)
        sequences = [f"select setval('{name}_id_seq', {drawn.randint(1, 99)})" for name in ("account", "entry")]
        first, copy = twins(engine, "drawn", *TABLES)
        execute(copy, *sequences)
        run = tmp_path / f"run-{number}"
        with proxied(engine, run, binds=True) as it:
            Statements(seed + number, lambda at=it: through(engine, at, dbname="drawn")).go(STEPS)
        told = replayed(run, copy, "--order", "commit")
        for table, question in LEFT.items():
            assert asked(copy, question) == asked(first, question), f"seed {seed + number}: {table}"
        assert [told[key] for key in ("fails_now", "rows_differ", "unread", "mixed")] == [0, 0, [], []], told["told"]
        assert told["ids"] > 0
