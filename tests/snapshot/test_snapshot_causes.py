"""Planted causes on a real server: the report and the comparison name each first."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psycopg
import pytest
from planted import Planted
from snapshot_help import FACTS, OTHER_STATISTICS, SETTINGS, Lab

from dbdyno.snapshot.wording import three_digits
from slow_storage import SlowStorage


class OnPostgres(Planted):
    """Planted causes on a server with pg_stat_statements."""

    def __init__(self, lab: Lab, major: int) -> None:
        super().__init__("postgres", lab.dsn, lab.store, lab.options, pause_s=0.02 if major >= 15 else 1.1)
        self.lab = lab

    def plant(self, *statements: str) -> Callable[[], object]:
        """Return a function that executes statements that plant the cause; they are not counted as load."""
        return lambda: self.lab.run("set pg_stat_statements.track = 'none'", *statements)


@pytest.fixture
def planted(lab: Lab, major: int) -> OnPostgres:
    lab.run(
        "create table orders (id int primary key, cust int, amount int)",
        "insert into orders select n, n / 10, n from generate_series(1, 20000) n",
        "create index orders_cust on orders (cust)",
        "analyze orders",
    )
    return OnPostgres(lab, major)


def asks(lab: Lab, statement: str, times: int = 30) -> Callable[[], object]:
    """Return a load that executes the statement `times` times in one session."""
    return lambda: lab.run(*[statement] * times)


BY_CUST = "select sum(amount) from orders where cust = 77"


def test_a_dropped_index(planted: OnPostgres):
    load = asks(planted.lab, BY_CUST)
    models = planted.models(load, planted.plant("drop index orders_cust"), None, sampled=False)
    for model in models:
        first = model["sections"][0]["tables"][0]["rows"][0]
        assert first["what"] == "index orders_cust on orders was dropped"
        (why,) = model["why"]
        assert why["causes"][0]["code"] == "index" and why["causes"][0]["share"] == pytest.approx(first["share"])
        assert why["after"] > why["before"] and why["causes"][0]["evidence"] == [first["evidence"]]


@pytest.mark.soak
def test_an_index_that_was_made_in_the_first_period_and_dropped_in_the_second(planted: OnPostgres):
    """The first snapshot has it not, nor the last: the page said "another plan, with the same indexes"."""
    planted.lab.run("drop index orders_cust")
    load, made = asks(planted.lab, BY_CUST), []

    def with_index() -> None:
        load()
        if not made:
            planted.lab.run("create index orders_cust on orders (cust)")
            made.append(True)

    found = planted.first_causes(with_index, planted.plant("drop index orders_cust"), load)
    assert found == ["index orders_cust on orders was dropped"] * 2


@pytest.mark.soak
def test_a_plan_flip_by_analyze(planted: OnPostgres):
    lab = planted.lab
    lab.run(*FACTS)
    load = asks(lab, "select count(b) from facts where a < 3", 10)
    # the statistics are told that nearly all rows are wanted: the index is given up
    found = planted.first_causes(load, planted.plant(*OTHER_STATISTICS))
    assert found == ["another plan since facts was analyzed"] * 2


@pytest.mark.soak
def test_another_plan_without_analyze(planted: OnPostgres):
    load = asks(planted.lab, BY_CUST)
    off = [f"alter system set enable_{kind}scan = off" for kind in ("index", "bitmap", "indexonly")]
    try:
        found = planted.first_causes(load, planted.plant(*off, "select pg_reload_conf()"))
    finally:
        planted.lab.run("alter system reset all", "select pg_reload_conf()")
    assert found == ["another plan for orders, with the same indexes"] * 2


@pytest.mark.soak
def test_a_release_with_one_more_query(planted: OnPostgres):
    load = asks(planted.lab, BY_CUST)
    more = "select count(*) from orders a join orders b using (cust) where a.amount % 7 = 3"

    def release() -> None:
        load()
        planted.lab.run(*[more] * 2)

    found = planted.first_causes(load, after=release)
    assert all(one.startswith("new statement: select count(*) from orders a join") for one in found)


@pytest.mark.soak
def test_a_table_that_doubled(planted: OnPostgres):
    lab = planted.lab
    load = asks(lab, "select count(*) from orders where amount % 7 = 3", 10)
    double = (
        "insert into orders select id + 20000, cust, amount from orders",
        "insert into orders select id + 40000, cust, amount from orders",
    )
    found = planted.first_causes(load, planted.plant(*double))
    assert all(one.startswith("table orders grew") for one in found)


@pytest.mark.soak
def test_bloat(planted: OnPostgres):
    lab = planted.lab
    load = asks(lab, "select count(*) from orders where amount % 7 = 3", 10)
    found = planted.first_causes(load, planted.plant(*["update orders set cust = cust + 1"] * 12))
    assert found == ["table orders is bloated"] * 2


@pytest.mark.soak
def test_temporary_files(planted: OnPostgres):
    lab = planted.lab
    ask = "select count(*) from (select * from orders order by amount, cust desc) s"

    def load(memory: str) -> Callable[[], object]:
        return lambda: lab.run(f"set work_mem = '{memory}'", *[ask] * 5)

    found = planted.first_causes(load("64MB"), after=load("64kB"))
    assert all(one.startswith("sorts and hashes spill to temporary files") for one in found)


@pytest.mark.soak
def test_more_sessions(planted: OnPostgres, major: int):
    if major < 14:
        pytest.skip("sessions are counted from PostgreSQL 14 on")
    lab = planted.lab
    load = asks(lab, BY_CUST, 20)

    def storm() -> None:
        for _ in range(20):
            lab.run(BY_CUST)

    found = planted.first_causes(load, after=storm)
    assert found == ["many more sessions begin"] * 2


@pytest.mark.soak
def test_a_convoy_behind_a_lock(planted: OnPostgres):
    lab = planted.lab
    ask = "update orders set amount = amount + 1 where id = 5"

    convoy = partial(lab.convoy, ask, lambda: lab.run(ask))
    found = planted.first_causes(asks(lab, ask), after=convoy, sampled=True)
    assert all(one.startswith("sessions wait for row locks of each other in update orders set") for one in found)


@pytest.mark.soak
def test_a_lock_that_a_forgotten_transaction_holds(planted: OnPostgres):
    """Nobody's statement ends any more: what blocks is named, not that calls went."""
    lab, holders = planted.lab, []
    ask = "update orders set amount = amount + 1 where id = 5"

    def forget() -> None:
        holders.append(lab.connect())
        holders[0].autocommit = False
        holders[0].execute("update orders set amount = 0 where id = 5")

    def load() -> None:
        lab.run(*[BY_CUST] * 20)
        with contextlib.suppress(psycopg.errors.QueryCanceled):
            lab.run("set statement_timeout = '300ms'", ask)

    models = planted.models(load, forget, None, sampled=True)
    holders[0].close()
    for model in models:
        first = model["sections"][0]["tables"][0]["rows"][0]
        assert first["what"].startswith("sessions wait for row locks of each other in update orders set")
        assert "the holder was idle in a transaction" in first["evidence"]


@pytest.mark.soak
def test_indexes_that_make_writes_dearer(planted: OnPostgres):
    lab = planted.lab
    lab.run("create table log (id serial, a int, b int, c text)")
    load = asks(lab, "insert into log (a, b, c) select n, n * 7, md5(n::text) from generate_series(1, 300) n", 10)
    more = [f"create index log_{n} on log ({what})" for n, what in enumerate(("md5(c)", "c, a", "b, c"))]
    found = planted.first_causes(load, planted.plant(*more))
    assert found == ["3 indexes on log were created: writes are dearer"] * 2


@pytest.mark.soak
def test_a_table_that_was_swapped_for_one_without_its_indexes(planted: OnPostgres):
    lab = planted.lab
    swap = ("create table o2 as select * from orders", "drop table orders", "alter table o2 rename to orders")
    found = planted.first_causes(asks(lab, BY_CUST), planted.plant(*swap, "analyze orders"))
    assert found == ["table orders was recreated without its indexes orders_cust, orders_pkey"] * 2


@pytest.mark.soak
def test_another_plan_since_another_table_of_the_statement_lost_its_statistics(planted: OnPostgres):
    lab = planted.lab
    lab.run(
        "create table facts (a int, b int)",
        "insert into facts select case when n % 100 = 0 then n else 1 end, n from generate_series(1, 40000) n",
        "create index facts_a on facts (a)",
        "analyze facts",
    )
    lose = [f"alter table facts alter {one} set statistics 0" for one in "ab"]
    lose += ["delete from pg_statistic where starelid = 'facts'::regclass", "analyze facts"]
    load = asks(lab, "select count(b) from facts f join orders o on o.id = f.b where a = 500", 20)
    for model in planted.models(load, planted.plant(*lose), None, sampled=False):
        first = model["sections"][0]["tables"][0]["rows"][0]
        assert first["what"] == "another plan for orders, with the same indexes"
        assert "facts was analyzed" in first["evidence"]


@pytest.mark.soak
def test_checkpoints_that_follow_each_other(planted: OnPostgres):
    lab = planted.lab
    ask = "update orders set amount = amount + 1 where id < 200"

    def storm() -> None:
        lab.run("set pg_stat_statements.track = 'none'", *["checkpoint"] * 3)
        asks(lab, ask, 20)()

    found = planted.first_causes(asks(lab, ask, 20), after=storm)
    assert all(one.startswith("checkpoints follow each other") for one in found)


@pytest.mark.soak
def test_autovacuum_that_was_turned_off(planted: OnPostgres):
    lab = planted.lab
    update = "update orders set cust = cust + 1"
    load = asks(lab, "select count(*) from orders where amount % 7 = 3", 10)
    lab.run("alter system set autovacuum_naptime = '1h'", "alter system set autovacuum = on", "select pg_reload_conf()")
    off = ("alter system set autovacuum = off", "select pg_reload_conf()")
    try:
        found = planted.first_causes(load, planted.plant(*off, *[update] * 12))
    finally:
        lab.run("alter system reset all", "select pg_reload_conf()")
    assert found == ["autovacuum was turned off, and orders is bloated"] * 2


@pytest.mark.soak
def test_a_cold_cache_after_a_restart(own_lab: Lab, major: int):
    own_lab.run(
        "create table wide (id int primary key, filler text)",
        "insert into wide select n, repeat('x', 900) from generate_series(1, 6000) n",
        "analyze wide",
    )
    load = asks(own_lab, "select sum(length(filler)) from wide where id % 3 = 0", 2)
    found = OnPostgres(own_lab, major).first_causes(load, own_lab.engine.restart)
    assert found == ["the server was restarted, its cache was cold"] * 2


@pytest.mark.soak
@pytest.mark.parametrize("timed", [True, False])
def test_a_storage_whose_syncs_became_slow(tmp_path: Path, major: int, timed: bool):
    if shutil.which("cc") is None:
        pytest.skip("cc not found: apt-get install gcc")
    if timed and major < 14:
        pytest.skip("syncs of the WAL are timed from PostgreSQL 14 on")
    settings = {**SETTINGS, **({"track_wal_io_timing": True} if timed else {})}
    with SlowStorage(settings=settings) as engine, Lab(engine, tmp_path / "snaps") as lab:
        lab.run("create table t (a int)")
        load = asks(lab, "insert into t values (1)", 30)
        found = OnPostgres(lab, major).first_causes(load, lambda: engine.delay_us(60_000), sampled=not timed)
    assert found == ["syncs of the WAL became slow"] * 2


@pytest.mark.parametrize(
    ("value", "said"),
    [(1934.0, "1,930"), (0.1111, "0.111"), (56.64, "56.6"), (-1934, "-1,930"), (0, "0"), (2.0, "2"), (1e-5, "0.00001")],
)
def test_numbers_in_words_have_three_digits_and_no_exponent(value: float, said: str) -> None:
    assert three_digits(value) == said
