"""Planted causes on a real MariaDB server: the report and the comparison name each first."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from planted import Planted

from dbdyno.snapshot.engines.mariadb.sections import CONSUMER
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.store.folder import Store
from mariadb_server import MariaServer, missing, running_server
from together import together
from waiting import until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

MIB = 2**20


class OnMariadb(Planted):
    """Planted causes on a MariaDB server with performance_schema."""

    def __init__(self, server: MariaServer, folder: Path) -> None:
        super().__init__("mariadb", server.dsn, Store(folder), Options(), pause_s=0.05)
        self.server = server

    def run(self, *statements: str, counted: bool = True) -> None:
        """Execute statements in a new session; with `counted` false they plant the cause and do not count as load."""
        off = "update performance_schema.threads set instrumented = 'NO' where processlist_id = connection_id()"
        connection = self.server.connect(database="test")
        with connection, connection.cursor() as cursor:
            for statement in statements if counted else (off, *statements):
                cursor.execute(statement)

    def asks(self, statement: str, times: int = 30) -> Callable[[], object]:
        """Return a load that executes the statement `times` times in one session."""
        return lambda: self.run(*[statement] * times)

    def plant(self, *statements: str) -> Callable[[], object]:
        """Return a function that plants the cause with statements that do not count as load."""
        return lambda: self.run(*statements, counted=False)


running = pytest.fixture(scope="module")(running_server)


@pytest.fixture
def planted(running: MariaServer, tmp_path: Path) -> OnMariadb:
    made = OnMariadb(running, tmp_path / "snaps")
    made.run(
        "drop database test",
        "create database test",
        "create table test.orders (id int primary key, cust int, amount int, key orders_cust (cust))",
        "insert into test.orders select seq, seq div 10, seq from test.seq_1_to_20000",
        "analyze table test.orders",
        "truncate performance_schema.events_statements_summary_by_digest",
        counted=False,
    )
    return made


BY_CUST = "select sum(amount) from orders where cust = 77"
SCAN = "select count(*) from orders where amount % 7 = 3"


def test_a_dropped_index(planted: OnMariadb):
    found = planted.first_causes(planted.asks(BY_CUST), planted.plant("drop index orders_cust on orders"))
    assert found == ["index orders_cust on test.orders was dropped"] * 2


def convoy(planted: OnMariadb, hold: str, free: str, ask: str, waiting: str) -> None:
    """Let one session hold a lock that three others request, for half a second after all three wait."""
    sessions = [planted.server.connect(database="test") for _ in range(4)]
    holder, *waiters = (one.cursor() for one in sessions)
    for statement in hold.split("; "):
        holder.execute(statement)
    with together(*(partial(one.execute, ask) for one in waiters)):
        until(lambda: holder.execute(waiting) and holder.fetchone() == (3,), 60)
        time.sleep(0.5)
        holder.execute(free)
    for one in sessions:
        one.close()


UPDATE = "update orders set amount = amount + 1 where id = 5"


@pytest.mark.soak
def test_a_convoy_behind_a_row_lock(planted: OnMariadb):
    hold = f"begin; {UPDATE}"
    waiting = (
        "select cast(variable_value as int) from information_schema.global_status"
        " where variable_name = 'innodb_row_lock_current_waits'"
    )
    found = planted.first_causes(planted.asks(UPDATE), after=lambda: convoy(planted, hold, "commit", UPDATE, waiting))
    assert found == ["sessions wait for each other's locks"] * 2


@pytest.mark.soak
def test_a_convoy_behind_the_lock_of_a_table_as_sampled(planted: OnMariadb):
    planted.run(CONSUMER.format("events_statements_current"), counted=False)
    hold = "lock tables orders write"
    waiting = "select count(*) from information_schema.processlist where state = 'Waiting for table metadata lock'"
    found = planted.first_causes(
        planted.asks(UPDATE), after=lambda: convoy(planted, hold, "unlock tables", UPDATE, waiting), sampled=True
    )
    assert found == ["sessions wait for each other's locks"] * 2


@pytest.mark.soak
def test_a_release_with_one_more_query(planted: OnMariadb):
    load = planted.asks(BY_CUST)
    more = "select count(*) from orders a join orders b using (cust) where a.amount % 7 = 3"

    def release() -> None:
        load()
        planted.run(*[more] * 2)

    for model in planted.models(load, lambda: None, release, sampled=False):
        first = model["sections"][0]["tables"][0]["rows"][0]
        assert first["what"].startswith("new statement: SELECT COUNT ( * ) FROM")
        assert "; reads a whole table: " in first["evidence"]


@pytest.mark.soak
def test_a_table_that_doubled(planted: OnMariadb):
    digests = "update performance_schema.setup_consumers set enabled = '{}' where name = 'statements_digest'"

    def double() -> None:
        """Rows are counted, the statement that adds them is not: it would be the cause that is named first."""
        planted.run(digests.format("NO"), counted=False)
        planted.run("insert into orders select id + 20000, cust, amount from orders")
        planted.run("insert into orders select id + 40000, cust, amount from orders")
        planted.run(digests.format("YES"), counted=False)

    found = planted.first_causes(planted.asks(SCAN, 10), double)
    assert all(one.startswith("table test.orders grew: its statements examine ") for one in found)


@pytest.mark.soak
def test_temporary_tables_on_disk(planted: OnMariadb):
    ask = "select count(*) from (select distinct amount, cust from orders) s"

    def load(kib: int) -> Callable[[], object]:
        return lambda: planted.run(f"set max_heap_table_size = {kib * 1024}", *[ask] * 3)

    found = planted.first_causes(load(16384), after=load(32))
    assert all(one.startswith("temporary tables go to disk: SELECT COUNT") for one in found)


@pytest.mark.soak
def test_sorts_in_passes(planted: OnMariadb):
    ask = "select sum(seq) from (select seq from seq_1_to_200000 order by seq * 7919 % 200003 limit 199999) s"

    def load(kib: int) -> Callable[[], object]:
        return lambda: planted.run(f"set sort_buffer_size = {kib * 1024}", ask)

    found = planted.first_causes(load(65536), after=load(16))
    assert found[0].startswith("sorts do not fit in memory: SELECT SUM")


@pytest.mark.soak
def test_a_storm_of_connections(planted: OnMariadb):
    def storm() -> None:
        with together(*[partial(planted.run, SCAN)] * 30):
            pass

    found = planted.first_causes(planted.asks(SCAN, 5), after=storm)
    assert found == ["many more connections are opened"] * 2


def wide(planted: OnMariadb) -> Callable[[], object]:
    """Return a load over a table of about 50 MB."""
    planted.run(
        "create table wide (id int primary key, filler varchar(1000))",
        "insert into wide select seq, repeat('x', 900) from seq_1_to_40000",
        counted=False,
    )
    return planted.asks("select sum(length(filler)) from wide where id % 3 = 0", 3)


@pytest.mark.soak
def test_a_buffer_pool_that_was_made_smaller(planted: OnMariadb):
    load = wide(planted)
    smaller = f"set global innodb_buffer_pool_size = {8 * MIB}"
    try:
        found = planted.first_causes(load, planted.plant(smaller))
    finally:
        planted.run(f"set global innodb_buffer_pool_size = {64 * MIB}", counted=False)
    assert found == ["the buffer pool was reduced, 64 → 8 MiB, and no longer holds what is read"] * 2


@pytest.mark.soak
def test_a_cold_buffer_pool_after_a_crash(planted: OnMariadb):
    load = wide(planted)

    def crash() -> None:
        time.sleep(2)  # the server tells its age in whole seconds
        planted.server.kill()
        planted.server.start()

    found = planted.first_causes(load, crash)
    assert found == ["the server was restarted, its buffer pool was cold"] * 2


@pytest.mark.soak
def test_another_plan(planted: OnMariadb):
    load = planted.asks("select sum(amount) from orders where cust < 20", 10)
    found = planted.first_causes(load, planted.plant("alter table orders alter index orders_cust ignored"))
    assert all(
        one.startswith("many more rows are examined, because of another plan or other values: SELECT SUM ( `amount` )")
        for one in found
    )


@pytest.mark.soak
def test_old_versions_of_rows_that_nobody_purges(planted: OnMariadb):
    load = planted.asks("select count(*) from orders where cust between 100 and 120", 20)
    holder = planted.server.connect(database="test", autocommit=False)

    many = "begin not atomic for i in 1..12000 do update orders set cust = cust + 1 where id = i; end for; end"

    def hold() -> None:
        holder.cursor().execute("start transaction with consistent snapshot")
        holder.cursor().execute("select count(*) from orders")
        planted.run("set global innodb_flush_log_at_trx_commit = 0", many, counted=False)

    with holder:
        found = planted.first_causes(load, hold)
    planted.run("set global innodb_flush_log_at_trx_commit = 1", counted=False)
    assert found == ["old row versions pile up: purge cannot keep up"] * 2
