"""Planted causes on a real server: the report and the comparison name each first."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from snapshot_help import Lab

from dbdyno.errors import SnapshotError
from dbdyno.judge.snapshots import compare
from dbdyno.snapshot.causes.change import three
from dbdyno.snapshot.interval import Interval
from dbdyno.snapshot.periods import period
from dbdyno.snapshot.report import report
from dbdyno.snapshot.take import open_collector, take

PARTS = 3
"""Sub-intervals before the cause, and after it."""


class Planted:
    """Two stretches of one load with a cause between, cut into short sub-intervals."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def first_causes(
        self,
        load: Callable[[], object],
        plant: Callable[[], object] = lambda: None,
        after: Callable[[], object] | None = None,
        *,
        sampled: bool = False,
    ) -> list[str]:
        """What compare and report say first."""
        numbers = []
        with open_collector(self.lab.dsn, self.lab.options) as collector:
            sampler = collector.sampler(0.02)
            if sampled:
                sampler.start()
            try:
                load()
                for step in range(2 * PARTS + 1):
                    if step == PARTS + 1:
                        plant()
                    if step:
                        (load if step <= PARTS or after is None else after)()
                    time.sleep(0.02 if self.lab.major >= 15 else 1.1)
                    seen = sampler.take() if sampled else None
                    numbers.append(self._take(collector, seen))
            finally:
                if sampled:
                    sampler.stop()
        store = self.lab.store
        ends = ((numbers[0], numbers[PARTS]), (numbers[PARTS], numbers[-1]))
        periods = [period(store, f"snap:{a}..{b}") for a, b in ends]
        with Interval(store, store.find(str(numbers[0])), store.find(str(numbers[-1]))) as interval:
            models = [compare(store, *periods), report(interval)]
        heads = [one["sections"][0] for one in models]
        for head in heads:
            print(head["about"], head["notes"], *(row for table in head["tables"] for row in table["rows"]), sep="\n")
        return [head["tables"][0]["rows"][0]["what"] if head["tables"] else "nothing" for head in heads]

    def _take(self, collector: Any, seen: Any) -> int:
        """A snapshot; the second try of one that met a restart."""
        try:
            return take(collector, self.lab.store, engine_name="postgres", sampled=seen).number
        except SnapshotError:
            return take(collector, self.lab.store, engine_name="postgres", sampled=seen).number

    def plant(self, *statements: str) -> Callable[[], object]:
        """Statements that are not counted: the cause, not the load."""
        return lambda: self.lab.run("set pg_stat_statements.track = 'none'", *statements)


@pytest.fixture
def planted(lab: Lab, major: int) -> Planted:
    lab.major = major
    lab.run(
        "create table orders (id int primary key, cust int, amount int)",
        "insert into orders select n, n / 10, n from generate_series(1, 20000) n",
        "create index orders_cust on orders (cust)",
        "analyze orders",
    )
    return Planted(lab)


def asks(lab: Lab, statement: str, times: int = 30) -> Callable[[], object]:
    """A load: the statement so many times, in one session."""
    return lambda: lab.run(*[statement] * times)


BY_CUST = "select sum(amount) from orders where cust = 77"


def test_a_dropped_index(planted: Planted):
    load = asks(planted.lab, BY_CUST)
    found = planted.first_causes(load, planted.plant("drop index orders_cust"))
    assert found == ["index orders_cust on orders was dropped"] * 2


@pytest.mark.soak
def test_a_plan_flip_by_analyze(planted: Planted):
    lab = planted.lab
    lab.run(
        "create table facts (a int, b int)",
        "insert into facts select n % 100, n from generate_series(1, 20000) n",
        "create index facts_a on facts (a)",
        "analyze facts",
        "insert into facts select 500, n from generate_series(1, 40000) n",
    )
    load = asks(lab, "select count(b) from facts where a < 3", 10)
    # the statistics are told that nearly all rows are wanted: the index is given up
    spoil = (
        "create table kept as select * from facts",
        "truncate facts",
        "insert into facts select 1, n from generate_series(1, 20000) n",
        "analyze facts",
        "truncate facts",
        "insert into facts select * from kept",
    )
    found = planted.first_causes(load, planted.plant(*spoil))
    assert found == ["another plan since facts was analyzed"] * 2


@pytest.mark.soak
def test_a_release_with_one_more_query(planted: Planted):
    load = asks(planted.lab, BY_CUST)
    more = "select count(*) from orders a join orders b using (cust) where a.amount % 7 = 3"

    def release() -> None:
        load()
        planted.lab.run(*[more] * 2)

    found = planted.first_causes(load, after=release)
    assert all(one.startswith("new statement: select count(*) from orders a join") for one in found)


@pytest.mark.soak
def test_a_table_that_doubled(planted: Planted):
    lab = planted.lab
    load = asks(lab, "select count(*) from orders where amount % 7 = 3", 10)
    double = (
        "insert into orders select id + 20000, cust, amount from orders",
        "insert into orders select id + 40000, cust, amount from orders",
    )
    found = planted.first_causes(load, planted.plant(*double))
    assert all(one.startswith("table orders grew") for one in found)


@pytest.mark.soak
def test_bloat(planted: Planted):
    lab = planted.lab
    load = asks(lab, "select count(*) from orders where amount % 7 = 3", 10)
    found = planted.first_causes(load, planted.plant(*["update orders set cust = cust + 1"] * 12))
    assert found == ["table orders is bloated"] * 2


@pytest.mark.soak
def test_temporary_files(planted: Planted):
    lab = planted.lab
    ask = "select count(*) from (select * from orders order by amount, cust desc) s"

    def load(memory: str) -> Callable[[], object]:
        return lambda: lab.run(f"set work_mem = '{memory}'", *[ask] * 5)

    found = planted.first_causes(load("64MB"), after=load("64kB"))
    assert all(one.startswith("sorts and hashes spill to temporary files") for one in found)


@pytest.mark.soak
def test_more_sessions(planted: Planted, major: int):
    if major < 14:
        pytest.skip("sessions are counted from PostgreSQL 14 on")
    lab = planted.lab
    load = asks(lab, BY_CUST, 20)

    def storm() -> None:
        for _ in range(20):
            lab.run(BY_CUST)

    found = planted.first_causes(load, after=storm)
    assert found[0] == "many more sessions begin"


def test_a_convoy_behind_a_lock(planted: Planted):
    lab = planted.lab
    ask = "update orders set amount = amount + 1 where id = 5"

    def convoy() -> None:
        with lab.connect() as holder:
            holder.autocommit = False
            holder.execute(ask)
            waiters = [threading.Thread(target=lab.run, args=(ask,)) for _ in range(3)]
            for one in waiters:
                one.start()
            time.sleep(0.3)
            holder.commit()
            for one in waiters:
                one.join()

    found = planted.first_causes(asks(lab, ask), after=convoy, sampled=True)
    assert found == ["sessions wait for each other's locks"] * 2


@pytest.mark.soak
def test_checkpoints_that_follow_each_other(planted: Planted):
    lab = planted.lab
    ask = "update orders set amount = amount + 1 where id < 200"

    def storm() -> None:
        lab.run("set pg_stat_statements.track = 'none'", *["checkpoint"] * 3)
        asks(lab, ask, 20)()

    found = planted.first_causes(asks(lab, ask, 20), after=storm)
    assert any(one.startswith("checkpoints follow each other") for one in found)


@pytest.mark.soak
def test_autovacuum_that_was_turned_off(planted: Planted):
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
    own_lab.major = major
    own_lab.run(
        "create table wide (id int primary key, filler text)",
        "insert into wide select n, repeat('x', 900) from generate_series(1, 6000) n",
        "analyze wide",
    )
    load = asks(own_lab, "select sum(length(filler)) from wide where id % 3 = 0", 2)
    found = Planted(own_lab).first_causes(load, own_lab.engine.restart)
    assert found[0] == "the server was restarted, its cache was cold"


@pytest.mark.parametrize(
    ("value", "said"),
    [(1934.0, "1,930"), (0.1111, "0.111"), (56.64, "56.6"), (-1934, "-1,930"), (0, "0"), (2.0, "2"), (1e-5, "0.00001")],
)
def test_numbers_in_words_have_three_digits_and_no_exponent(value: float, said: str) -> None:
    assert three(value) == said
