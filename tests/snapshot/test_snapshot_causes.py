"""Planted causes on a real server: the report and the comparison name each first."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from snapshot_help import Lab

from dbdyno.judge.snapshots import compare
from dbdyno.snapshot.interval import Interval
from dbdyno.snapshot.periods import period
from dbdyno.snapshot.report import report
from dbdyno.snapshot.take import open_collector, take

PARTS = 4
"""Sub-intervals before the cause, and after it."""


class Planted:
    """Two stretches of one load with a cause between, cut into short sub-intervals."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def first_causes(
        self, load: Callable[[], object], plant: Callable[[], object], after: Callable[[], object]
    ) -> list[str]:
        """What compare and report say first."""
        with open_collector(self.lab.dsn, self.lab.options) as collector:

            def snap() -> int:
                time.sleep(0.02 if self.lab.major >= 15 else 1.1)
                return take(collector, self.lab.store, engine_name="postgres").number

            load()
            numbers = [snap()]
            for step in range(2 * PARTS):
                if step == PARTS:
                    plant()
                (load if step < PARTS else after)()
                numbers.append(snap())
        store = self.lab.store
        periods = [
            period(store, f"snap:{a}..{b}") for a, b in ((numbers[0], numbers[PARTS]), (numbers[PARTS], numbers[-1]))
        ]
        with Interval(store, store.find(str(numbers[0])), store.find(str(numbers[-1]))) as interval:
            models = [compare(store, *periods), report(interval)]
        print([one["sections"][0] for one in models])
        return [one["sections"][0]["tables"][0]["rows"][0]["what"] for one in models]


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
    found = planted.first_causes(load, lambda: planted.lab.run("drop index orders_cust"), load)
    assert found == ["index orders_cust on orders was dropped"] * 2


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
    found = planted.first_causes(load, lambda: lab.run(*spoil), load)
    assert found == ["another plan since facts was analyzed"] * 2


def test_a_release_with_one_more_query(planted: Planted):
    load = asks(planted.lab, BY_CUST)
    more = "select count(*) from orders a join orders b using (cust) where a.amount % 7 = 3"

    def release() -> None:
        load()
        planted.lab.run(*[more] * 2)

    found = planted.first_causes(load, lambda: None, release)
    assert all(one.startswith("new statement: select count(*) from orders a join") for one in found)


def test_a_table_that_doubled(planted: Planted):
    lab = planted.lab
    load = asks(lab, "select count(*) from orders where amount % 7 = 3", 10)
    double = (
        "insert into orders select id + 20000, cust, amount from orders",
        "insert into orders select id + 40000, cust, amount from orders",
    )
    found = planted.first_causes(load, lambda: lab.run(*double), load)
    assert found == ["table orders grew 4 times"] * 2


def test_bloat(planted: Planted):
    lab = planted.lab
    load = asks(lab, "select count(*) from orders where amount % 7 = 3", 10)
    found = planted.first_causes(load, lambda: lab.run(*["update orders set cust = cust + 1"] * 4), load)
    assert found == ["table orders is bloated"] * 2


def test_temporary_files(planted: Planted):
    lab = planted.lab
    ask = "select count(*) from (select * from orders order by amount, cust desc) s"

    def load(memory: str) -> Callable[[], object]:
        return lambda: lab.run(f"set work_mem = '{memory}'", *[ask] * 5)

    found = planted.first_causes(load("64MB"), lambda: None, load("64kB"))
    assert all(one.startswith("sorts and hashes spill to temporary files") for one in found)


def test_more_sessions(planted: Planted, major: int):
    if major < 14:
        pytest.skip("sessions are counted from PostgreSQL 14 on")
    lab = planted.lab
    load = asks(lab, BY_CUST, 20)

    def storm() -> None:
        for _ in range(20):
            lab.run(BY_CUST)

    found = planted.first_causes(load, lambda: None, storm)
    assert "many more sessions begin" in found


def test_nothing_is_said_to_have_happened_under_a_steady_load(planted: Planted):
    load = asks(planted.lab, BY_CUST)
    with pytest.raises(IndexError):
        planted.first_causes(load, lambda: None, load)
