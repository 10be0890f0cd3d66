"""Each rule for MariaDB finds a fault planted in a real server, with its figures; a clean server gives hardly any."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from advised import Found

from command_line import succeeded
from dbdyno.advise.engines.mariadb.parts import Status
from dbdyno.advise.engines.mariadb.read import read
from dbdyno.advise.judge import choose_rules, judge, rules
from dbdyno.advise.placement import FastDevice, Segment
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.store.folder import Store
from dbdyno.snapshot.taking.take import open_collector, take
from fresh_dice import fresh_dice
from mariadb_server import MariaServer, running_server

RELEASES = {"missing_minor", "end_of_life", "version_faults", "known_faults"}
"""Rules that may fire because of the version of the server under test."""
SMALL = (
    "--innodb-buffer-pool-size=6M",
    "--innodb-log-file-size=4M",
    "--innodb-max-dirty-pages-pct-lwm=99",
    "--innodb-adaptive-flushing=OFF",
    "--innodb-flush-log-at-trx-commit=2",
    "--aria-pagecache-buffer-size=128K",
    "--table-open-cache=10",
    "--max-connections=12",
)
LOOKS, TABLES, SESSIONS, GROUPINGS = 1100, 25, 10, 22
_OBJECTS = (
    "create table test.items (id int primary key auto_increment, v int, note varchar(300), memo text)",
    "insert into test.items (v, note, memo) select seq % 4000, repeat(char(65 + seq % 26), 200), repeat(seq, 30)"
    " from test.seq_1_to_24000",
    "alter table test.items add key by_note (note), add key again (note)",
    "analyze table test.items persistent for columns (v) indexes ()",
    "create table test.`at its end` (id int primary key auto_increment) auto_increment = 2000000000",
    "insert into test.`at its end` values ()",
    "create table test.parents (id int primary key)",
    "create table test.children (id int primary key, parent int, foreign key of_parent (parent)"
    " references test.parents (id))",
    *(f"create table test.many_{n} (id int primary key)" for n in range(TABLES)),
)
_WORK = (
    "insert into test.items (v, note, memo) select 1, 'n', 'm' from test.seq_1_to_1500",
    *(f"select memo from test.items where id + 0 = {n}" for n in range(1, 13)),
    *(f"select sum(v) from test.items where v = {n}" for n in range(14)),
    *("select avg(v) from test.items where v > 0" for _ in range(11)),
    *("select memo, count(*) from test.items where id < 15000 group by memo limit 1" for _ in range(GROUPINGS)),
    *(
        f"select count(t.memo) from test.seq_1_to_2000 s straight_join test.items t on t.id = 1 + s.seq * {n} % 24000"
        for n in (7919, 5749, 6271)
    ),
    *(f"select * from test.many_{n % TABLES} limit 1" for n in range(LOOKS)),
)


def run(server: MariaServer, *statements: str) -> None:
    """Execute statements in a new session and close it."""
    with contextlib.closing(server.connect()) as session, session.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def age(server: MariaServer) -> float:
    """Return the checkpoint age as a fraction of the maximum that the log allows."""
    with contextlib.closing(server.connect()) as session, session.cursor() as cursor:
        cursor.execute("show global status like 'innodb_checkpoint%age'")
        found = {name.lower(): int(value) for name, value in cursor.fetchall()}
    return found["innodb_checkpoint_age"] / found["innodb_checkpoint_max_age"]


def judged(server: MariaServer) -> Found:
    """Return the facts of the server and the advice for it."""
    facts = read(server.dsn)
    return Found(facts, judge(facts, rules()))


@contextlib.contextmanager
def sessions(server: MariaServer) -> Iterator[None]:
    """Open an idle and a busy session, each in a transaction, sessions that wait for each of them, and idle ones."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(contextlib.closing(server.connect())) for _ in range(SESSIONS)]
        lock = "update test.items set v = 0 where id = {}"
        idle, busy, *rest = opened
        for session, row in ((idle, 1), (busy, 2)):
            session.begin()
            session.cursor().execute(lock.format(row))
        work = [(busy, "select sleep(60)"), (rest[0], lock.format(1)), (rest[1], lock.format(2))]
        threads = [threading.Thread(target=_until_killed, args=one) for one in work]
        for thread in threads:
            thread.start()
        try:
            _wait_for(server, 2)
            yield
        finally:
            idle.rollback()
            run(server, f"kill {busy.thread_id()}")
            for thread in threads:
                thread.join()


def _until_killed(session: Any, statement: str) -> None:
    import pymysql

    with contextlib.suppress(pymysql.Error):
        session.cursor().execute(statement)


def _wait_for(server: MariaServer, waiting: int) -> None:
    """Wait until that many sessions have waited for a lock for two seconds or more by the server's clock."""
    asked = (
        "select count(*) from information_schema.innodb_trx where trx_wait_started <= now() - interval 2 second"
        " and trx_state = 'LOCK WAIT'"
    )
    with contextlib.closing(server.connect()) as session, session.cursor() as cursor:
        for _ in range(600):
            cursor.execute(asked)
            if cursor.fetchone()[0] >= waiting:
                return
            time.sleep(0.1)
    raise AssertionError("nobody waits")


def pgbench(server: MariaServer, transactions: int = 150) -> None:
    """Create two tables and run the work of pgbench on them."""
    dice = fresh_dice()
    run(
        server,
        "create table test.accounts (aid int primary key, balance int, filler char(84))",
        "create table test.branches (bid int primary key, balance int)",
        "insert into test.accounts select seq, 0, '' from test.seq_1_to_10000",
        "insert into test.branches values (1, 0), (2, 0)",
    )
    with contextlib.closing(server.connect(autocommit=False)) as session, session.cursor() as cursor:
        for _ in range(transactions):
            account = dice.randint(1, 10000)
            cursor.execute("update test.accounts set balance = balance + 1 where aid = %s", [account])
            cursor.execute("select balance from test.accounts where aid = %s", [account])
            cursor.execute("update test.branches set balance = balance + 1 where bid = %s", [1 + account % 2])
            session.commit()


server = pytest.fixture(scope="module")(running_server)


@pytest.fixture(scope="module")
def clean(server: MariaServer) -> Found:
    pgbench(server)
    return judged(server)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("of_mariadb"))


@pytest.fixture(scope="module")
def spoilt(server: MariaServer, clean: Found, store: Store) -> Found:
    """Return the advice after the work, with one snapshot before the work and one after it."""
    run(server, *_OBJECTS)
    server.stop()
    server.options = SMALL
    server.start()
    with open_collector(server.dsn, Options()) as collector:
        take(collector, store, engine_name="mariadb")
        run(server, *_WORK)
        take(collector, store, engine_name="mariadb")
    with sessions(server):
        return judged(server)


@pytest.fixture(scope="module")
def full(server: MariaServer, spoilt: Found) -> Found:
    """Return the advice for a server whose log is nearly full; an idle server writes its pages within a second."""
    updates = [f"update test.items set v = v + 1, memo = reverse(memo) where id < {n}" for n in (900, 901)]
    for _ in range(50):
        run(server, *updates)  # it must have been filled twice, whatever ran before
        while age(server) < 0.75:
            run(server, *updates)
        facts = read(server.dsn)
        if (found := judge(facts, choose_rules(["redo_log"])))["findings"]:
            return Found(facts, found)
    raise AssertionError(facts.row_of(Status))


def test_on_a_server_of_pgbench_hardly_a_rule_fires(clean: Found) -> None:
    fired = {one["rule"] for one in clean.model["findings"]} - RELEASES
    assert len(fired) * 50 < len(rules()), fired


def test_rules_for_mariadb_are_judged_there(clean: Found) -> None:
    told = {one["rule"]: one["why"] for one in clean.model["not_judged"]}
    own = {one.name for one in rules() if "mariadb" in one.engines} - {"known_faults", "placement"}
    assert not own & told.keys(), {name: told[name] for name in own & told.keys()}


def test_known_faults_are_asked_of_a_live_server(server: MariaServer, clean: Found) -> None:
    done = succeeded("advise", server.dsn, "--only", "faults", "--format", "json")
    assert '"engine": "mariadb"' in done.stdout


def test_every_finding_has_figures_with_their_place_a_fix_and_a_source(spoilt: Found) -> None:
    for one in spoilt.model["findings"]:
        assert one["evidence"] and all(each["place"] for each in one["evidence"]), one["rule"]
        assert one["fix"] and one["refuted_by"] and one["expected"], one["rule"]
        assert "PostgreSQL" not in one["source"] and "pg_" not in str(one["evidence"]), one["rule"]


def test_a_buffer_pool_that_reads_again(spoilt: Found) -> None:
    assert spoilt.figure("buffer_pool", "innodb_buffer_pool_size") == 6 * 1024**2
    assert spoilt.figure("buffer_pool", "read again") >= 6 * 64


def test_a_log_that_is_nearly_full(full: Found) -> None:
    assert full.figure("redo_log", "innodb_log_file_size") == 4 * 1024**2
    behind, most = (full.figure("redo_log", name) for name in ("age of the checkpoint", "largest allowed age"))
    assert 0.7 * most <= behind <= most < 4 * 1024**2


def test_temporary_tables_on_disk(spoilt: Found) -> None:
    assert "`memo` , COUNT" in spoilt.only("temp_tables")["sentence"]
    assert spoilt.figure("temp_tables", "temporary tables on disk") == GROUPINGS


def test_tables_that_are_thrown_out_and_opened_again(spoilt: Found) -> None:
    assert spoilt.figure("table_cache", "table_open_cache") == 10
    assert spoilt.figure("table_cache", "evicted to make room") >= LOOKS - TABLES


def test_statements_without_an_index(spoilt: Found) -> None:
    """That of one row, and the sum over a value that few rows have; the mean over all rows needs all of them."""
    found = {one["sentence"].partition("”")[0]: one for one in spoilt.of("without_index")}
    (row,) = (one for text, one in found.items() if "ID + ?" in text)
    (value,) = (one for text, one in found.items() if "SUM" in text)
    assert not any("AVG" in text for text in found)
    assert {each["what"]: each["value"] for each in row["evidence"]}["calls"] == 12
    assert value["fix"] == ["create index ... on test.items (v)"]


def test_unused_and_doubled_indexes(spoilt: Found) -> None:
    unused = {one["subject"] for one in spoilt.of("unused_index")}
    assert unused == {"test.items.by_note", "test.items.again"}
    assert spoilt.figure("unused_index", "rows inserted or updated") >= 1500
    (fix,) = spoilt.only("duplicate_index")["fix"]
    assert fix.startswith("alter table test.items drop index")


def test_a_key_near_its_end(spoilt: Found) -> None:
    assert spoilt.figure("key_end", "last value") == 2_000_000_000
    assert "test.`at its end`" in spoilt.only("key_end")["fix"][0]


def test_sessions_that_others_wait_for(spoilt: Found) -> None:
    assert spoilt.figure("idle_in_transaction", "sessions that wait behind it") == 1
    assert spoilt.figure("lock_queue", "they waited") >= 2
    assert spoilt.only("lock_queue")["fix"][-1].startswith("-- now: kill query ")


def test_connections_near_the_limit(spoilt: Found) -> None:
    assert spoilt.figure("connections_near_limit", "client sessions") >= SESSIONS


def test_tables_for_a_fast_device_by_what_was_read_of_their_files(spoilt: Found) -> None:
    """One table was read again and again; where a read came from memory nothing is to be gained, and that is said."""
    most = max(spoilt.facts.rows_of(Segment), key=lambda one: one.reads)
    assert most.name == "test.items" and most.bytes >= 8 * 1024**2 and most.reads >= 3000
    rows = {**spoilt.facts.rows, FastDevice: [FastDevice(1024**3)]}
    model = judge(replace(spoilt.facts, rows=rows), choose_rules(["placement"]))
    if model["not_judged"]:
        assert "the page cache answers" in model["not_judged"][0]["why"]
    else:
        (one,) = model["findings"]
        assert any("test.items" in line for line in one["fix"]) and "set tablespace" not in str(one["fix"])


def test_commits_that_are_not_on_disk(spoilt: Found) -> None:
    assert spoilt.only("flush_at_commit")["subject"] == "innodb_flush_log_at_trx_commit"


def test_an_interval_of_snapshots_has_what_was_done_in_it(server: MariaServer, spoilt: Found, store: Store) -> None:
    done = succeeded("advise", "snap:1..2", "--store", store.folder, "--format", "json")
    found = Found(spoilt.facts, json.loads(done.stdout))
    assert found.figure("temp_tables", "temporary tables on disk") == GROUPINGS
    assert found.figure("table_cache", "evicted to make room") >= LOOKS - TABLES
    assert found.figure("buffer_pool", "read again") >= 6 * 64
    assert found.only("flush_at_commit")["subject"] == "innodb_flush_log_at_trx_commit"
    (row,) = found.of("without_index")
    assert "ID + ?" in row["sentence"], "the sum needs statistics of columns, which snapshots do not hold"
    told = {one["rule"]: one for one in found.model["not_judged"]}
    assert "snapshots do not contain this" in told["unused_index"]["why"]
    assert "dbdyno advise mariadb://" in told["lock_queue"]["next"]
    assert not {"redo_log", "max_connections"} & told.keys()


def test_a_user_who_may_not_look_is_told_what_was_not_judged(server: MariaServer, clean: Found) -> None:
    run(server, "create or replace user little@'%'", "grant select on test.* to little@'%'")
    done = succeeded("advise", server.dsn_of("little"), "--format", "json", "--only", "buffer_pool")
    assert "grant" in done.stdout and '"rule": "buffer_pool"' in done.stdout
