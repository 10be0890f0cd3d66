"""A server with a fault of every kind that a rule knows, each planted so that its figures are known."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg

from dbdyno.advise.engines.postgres.read import read_target
from dbdyno.advise.facts import Facts
from dbdyno.bench.postgres.binaries import find_binaries
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres

SETTINGS: dict[str, Any] = {"shared_preload_libraries": "pg_stat_statements", "max_prepared_transactions": 2}
BAD = {
    "shared_buffers": "16MB",
    "effective_cache_size": "8MB",
    "wal_buffers": "32kB",
    "max_wal_size": "32MB",
    "min_wal_size": "32MB",
    "max_connections": "20",
    "autovacuum": "off",
    "autovacuum_freeze_max_age": "100000",
    "fsync": "off",
}
BURNT = 205_000
CLIENTS = 14


def connect(engine: EmbeddedPostgres, **more: str) -> psycopg.Connection[Any]:
    """Return a new session in autocommit mode."""
    known: Any = {**engine.conninfo(), **more}
    return psycopg.connect(**known, autocommit=True, prepare_threshold=None)


def run(engine: EmbeddedPostgres, *statements: str) -> None:
    """Execute statements in a new session and close it."""
    with contextlib.closing(connect(engine)) as session:
        for statement in statements:
            session.execute(statement)  # type: ignore[arg-type]


def asked(engine: EmbeddedPostgres, query: str) -> Any:
    """Return the single value that a query returns."""
    with contextlib.closing(connect(engine)) as session:
        row = session.execute(query).fetchone()  # type: ignore[arg-type]
    return None if row is None else row[0]


def has_pgbench() -> bool:
    """Return True if pgbench is in the folder of the server's programs."""
    return (find_binaries().bindir / "pgbench").is_file()


def pgbench(engine: EmbeddedPostgres, *words: str) -> None:
    """pgbench against the server."""
    known = engine.conninfo()
    command = [
        str(find_binaries().bindir / "pgbench"),
        "-h",
        known["host"],
        "-p",
        str(known["port"]),
        "-U",
        known["user"],
    ]
    subprocess.run([*command, *words, known["dbname"]], check=True, capture_output=True)


def facts(engine: EmbeddedPostgres) -> Facts:
    """Return the facts that the server reports now."""
    return read_target(Postgres.from_engine(engine))


_OBJECTS = (
    "create table parent (id int primary key)",
    "create table child (id int, parent int references parent, v int, note text)",
    "insert into parent select generate_series(1, 100)",
    "insert into child select i, 1 + i % 50, i, repeat('x', 60) from generate_series(1, 120000) i",
    "create index by_id on child (id)",
    "create index by_id_again on child (id)",
    "create index by_id_and_note on child (id, note)",
    "analyze child",
    "create table ends (id serial primary key)",
    "select setval('ends_id_seq', 2000000000)",
    "create table twins (a int)",
    "insert into twins values (1), (1)",
    "create table unseen (a int) with (autovacuum_enabled = off)",
    "insert into unseen select generate_series(1, 5000)",
    "create table dying (a int) with (autovacuum_enabled = off)",
    "insert into dying select generate_series(1, 20000)",
    "select count(*) from dying",
    "create table burn (a int)",
    "create table hollow (id int, note text) with (autovacuum_enabled = off)",
    "insert into hollow select i, repeat('h', 200) from generate_series(1, 90000) i",
    "delete from hollow where id % 9 > 0",
    "vacuum analyze hollow",
    *("select count(note) from hollow" for _ in range(10)),
    "select pg_create_physical_replication_slot('left', true)",
)
_PREPARED = ("begin", "insert into burn values (0)", "prepare transaction 'nobody''s'")
_WORK = (
    "delete from parent where id between 60 and 72",
    *("select note from child where v = 7" for _ in range(12)),
    *("select sum(parent) from child where child.v = 7" for _ in range(14)),
    *("select sum(parent) from child where parent = 7" for _ in range(11)),
    *("select sum(v) from child" for _ in range(11)),
    *(f"select id from child where id = {n}" for n in range(110)),
    "set work_mem = '64kB'",
    *("select id from child order by note, v desc offset 119999" for _ in range(3)),
    "set jit_above_cost = 0",
    "set jit_optimize_above_cost = 0",
    *("select sum(id * id + 1) from parent where id between 3 and 7 and id <> 5" for _ in range(24)),
    *(f"update pgbench_accounts set abalance = abalance + 1 where aid % 60 = {n}" for n in range(6)),
)


def spoil(engine: EmbeddedPostgres) -> None:
    """Plant the faults that remain in the server without an open session."""
    with contextlib.suppress(psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile):
        run(engine, "create extension hypopg")
    run(engine, *(f"alter system set {name} = '{value}'" for name, value in BAD.items()))
    engine.restart()
    run(
        engine,
        "select pg_stat_reset()",
        "select pg_stat_reset_shared('wal')",
        "select pg_stat_reset_shared('bgwriter')",
    )
    run(engine, *_OBJECTS)
    with contextlib.closing(connect(engine)) as session, contextlib.suppress(psycopg.errors.UniqueViolation):
        session.execute("create unique index concurrently invalid on twins (a)")
    run(engine, *_PREPARED, "select pg_stat_statements_reset()")
    run(engine, *_WORK)


@contextlib.contextmanager
def sessions(engine: EmbeddedPostgres) -> Iterator[None]:
    """Open sessions that hold a snapshot, a row lock or a table lock, others that wait for them, and idle ones."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(contextlib.closing(connect(engine))) for _ in range(CLIENTS)]
        old, idle, head, *rest = opened
        old.execute("begin isolation level repeatable read; select 1")
        burn = "begin insert into burn values (1); exception when others then null; end;"
        rest[0].execute(f"do $$ begin for i in 1..{BURNT} loop {burn} end loop; end $$")  # type: ignore[arg-type]
        run(engine, "update dying set a = a + 1")
        idle.execute("begin; update ends set id = id; lock table twins")
        waiting = [
            (head, "begin; lock table unseen; select pg_sleep(60)"),
            (rest[1], "select * from unseen"),
            (rest[2], "select * from twins"),
        ]
        threads = [threading.Thread(target=_until_cancelled, args=one) for one in waiting]
        for thread in threads:
            thread.start()
            time.sleep(0.3)
        try:
            _wait_for(engine, "select count(*) >= 2 from pg_locks where not granted")
            time.sleep(1.2)  # a queue that is shorter than a second is none
            _see_dying(engine)
            yield
        finally:
            for session, _ in waiting:
                session.cancel_safe()
            for thread in threads:
                thread.join()


def _see_dying(engine: EmbeddedPostgres) -> None:
    """Update the rows again if the server counted no dead rows, as can happen while an anti-wraparound vacuum runs."""
    dead = "select n_dead_tup >= 20000 from pg_stat_user_tables where relname = 'dying'"
    with contextlib.closing(connect(engine)) as session:
        row = session.execute(dead).fetchone()
    if row is None or not row[0]:
        run(engine, "update dying set a = a + 1")
    _wait_for(engine, dead)


def _until_cancelled(session: psycopg.Connection[Any], statement: str) -> None:
    with contextlib.suppress(psycopg.Error):
        session.execute(statement)  # type: ignore[arg-type]


def _wait_for(engine: EmbeddedPostgres, condition: str) -> None:
    with contextlib.closing(connect(engine)) as session:
        for _ in range(600):
            row = session.execute(condition).fetchone()  # type: ignore[arg-type]
            if row is not None and row[0]:
                return
            time.sleep(0.05)
    raise AssertionError(condition)
