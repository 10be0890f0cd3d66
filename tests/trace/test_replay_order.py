"""The order of a replay: sessions start after those that had ended, and commits see the same data as in the capture."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from proxy_help import asked, execute, proxied, through, twins
from test_replay_keys import replayed

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from together import together

TABLES = (
    "create table counter (id int primary key, v bigint)",
    "insert into counter select i, 1 from generate_series(1, 4) i",
    "create table seen (n int, v bigint)",
)
NEXT = "update counter set v = (v * 3 + %s) %% 1000003 where id = %s"
"""An update whose result depends on the order of updates."""


def held(where: dict[str, Any]) -> list[list[tuple[Any, ...]]]:
    """Return the content of the tables."""
    return [asked(where, "select * from counter order by id"), asked(where, "select * from seen order by n, v")]


def test_sessions_that_came_one_after_the_other_do_so_at_any_speed(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    """With --speed max all sessions began at once."""
    first, copy = twins(engine, "one", *TABLES)
    with proxied(engine, tmp_path / "run", binds=True) as it, through(engine, it, dbname="one") as always:
        for number in range(25):
            with through(engine, it, dbname="one") as connection:
                connection.execute(NEXT, [number, 1])
                connection.execute("insert into seen select %s, v from counter where id = 1", [number])
            always.execute("select 1")
    told = replayed(tmp_path / "run", copy)
    assert held(copy) == held(first)
    assert (told["sessions"], told["fails_now"]) == (26, 0)


def test_sessions_that_were_open_together_are_open_together(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    _, copy = twins(engine, "both", *TABLES)
    with proxied(engine, tmp_path / "run", binds=True) as it:
        one, other = (through(engine, it, dbname="both") for _ in range(2))
        one.execute("select pg_advisory_lock(7)")
        with together(partial(other.execute, "select pg_advisory_lock(7)")):
            one.execute("select pg_sleep(.1)")
            one.close()
        other.close()
    told = replayed(tmp_path / "run", copy)
    assert (told["turns"], told["same"]) == (3, 3), told["told"]


def test_commits_keep_their_order_and_what_each_had_seen(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    """A statement of an open transaction saw in the replay what was committed after it in the capture."""
    first, copy = twins(engine, "seen", *TABLES)
    with proxied(engine, tmp_path / "run", binds=True) as it:
        one, other = (through(engine, it, dbname="seen") for _ in range(2))
        for number in range(40):
            one.execute("begin")
            one.execute("insert into seen select %s, v from counter where id = 1", [number])
            other.execute(NEXT, [number, 1])
            one.execute("commit")
        one.close(), other.close()
    told = replayed(tmp_path / "run", copy, "--order", "commit")
    assert held(copy) == held(first)
    assert (told["commits"], told["out_of_order"]) == (80, 0)


def test_transactions_that_wait_for_locks_of_each_other_get_them_as_then(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    first, copy = twins(engine, "locks", *TABLES)

    def work(own: psycopg.Connection[Any], number: int) -> None:
        for at in range(20):
            own.execute("begin")
            own.execute(NEXT, [number * 100 + at, 1])
            own.execute(NEXT, [at, 2 + (number + at) % 3])
            own.execute("commit")
        own.close()

    with proxied(engine, tmp_path / "run", binds=True) as it:
        sessions = [through(engine, it, dbname="locks") for _ in range(4)]
        with together(*(partial(work, own, number) for number, own in enumerate(sessions))):
            pass
    told = replayed(tmp_path / "run", copy, "--order", "commit")
    assert held(copy) == held(first)
    assert (told["commits"], told["out_of_order"], told["same"]) == (80, 0, 320)


def test_a_select_that_writes_keeps_its_place_among_the_commits(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    """The end of `with made as (insert ...) select ...` says SELECT, and it was not ordered."""
    function = (
        "create function book(n int) returns bigint language sql as"
        " $$ update counter set v = (v * 3 + n) % 1000003 where id = 1 returning v $$"
    )
    first, copy = twins(engine, "writes", *TABLES, function)
    sql = "with made as (insert into seen select %s, v from counter where id = 1 returning v) select v from made"
    with proxied(engine, tmp_path / "run", binds=True) as it:
        one, other = (through(engine, it, dbname="writes") for _ in range(2))
        for number in range(40):
            one.execute(sql, [number])
            other.execute("select book(%s)", [number])
        one.close(), other.close()
    told = replayed(tmp_path / "run", copy, "--order", "commit")
    assert held(copy) == held(first)
    assert told["commits"] == 80


def test_a_session_that_others_wait_for_and_that_cannot_go_on_does_not_hold_them(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    _, copy = twins(engine, "cut", *TABLES)
    with proxied(engine, tmp_path / "run", binds=True) as it:
        one, other = (through(engine, it, dbname="cut") for _ in range(2))
        execute(copy, "alter database cut_copy set idle_in_transaction_session_timeout = '100ms'")
        one.execute("begin")
        one.execute(NEXT, [1, 1])
        one.execute("select pg_sleep(.4)")
        other.execute("select pg_sleep(.2)")
        one.execute("commit")
        other.execute(NEXT, [2, 1])
        one.close(), other.close()
    told = replayed(tmp_path / "run", copy, "--order", "commit", "--speed", "1")
    assert (told["broken"], told["out_of_order"]) == (1, 0)
    assert told["elapsed_ns"] < 10e9
    assert asked(copy, "select v from counter where id = 1") == [(5,)], "the other's update alone"
