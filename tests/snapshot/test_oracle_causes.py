"""Causes planted in synthetic snapshots of Oracle: report and comparison name each first. No instance was ever used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from oracle_recorded import T0, Snap, state

from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.judge.snapshots import compare
from dbdyno.snapshot.causes.oracle.reading import OracleChange
from dbdyno.snapshot.engines.oracle.collector import without_literals
from dbdyno.snapshot.engines.oracle.scripts import script, script_names
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.names import find
from dbdyno.snapshot.reading.periods import period
from dbdyno.snapshot.report import report
from dbdyno.snapshot.store.folder import Store

MINUTE_S = 60
PARTS = 4
"""Sub-intervals before the cause, and after it."""
COLUMNS = ("executions", "elapsed", "cpu", "io", "lock", "concurrency", "gets", "reads", "writes", "rows", "fetches")
TEXTS = {"a1": "select sum(amount) from orders where cust = :1", "b2": "update stock set n = n - 1 where id = :1"}


class Made:
    """A synthetic instance whose counters grow by a load, one minute at a time."""

    def __init__(self) -> None:
        self.at_s = 0
        self.started = "2026-11-01 08:00:00"
        self.statistics = {"user commits": 0, "physical reads": 0, "redo size": 0, "logons cumulative": 0}
        self.times = {"DB time": 0, "DB CPU": 0, "hard parse elapsed time": 0}
        self.events: dict[str, list[Any]] = {}
        self.sql: dict[tuple[str, int], dict[str, float]] = {}
        self.segments: dict[tuple[str, str], dict[str, float]] = {}
        self.parameters = {"sga_target": "4G"}
        self.texts = dict(TEXTS)

    def count(self, name: str, by: float) -> None:
        """Adds to a statistic."""
        self.statistics[name] = self.statistics.get(name, 0) + round(by)

    def waited(self, event: str, kind: str, times: int, mean_us: float, *, foreground: bool = True) -> None:
        """Add waits for an event."""
        one = self.events.setdefault(event, [kind, 0, 0, 0, 0])
        one[1] += times
        one[2] += round(times * mean_us)
        if foreground:
            one[3] += times
            one[4] += round(times * mean_us)

    def ran(self, statement: str, plan: int, times: int, mean_us: float, gets: float, **more: float) -> None:
        """Add executions of a statement; `more` are other counters per execution."""
        one = self.sql.setdefault((statement, plan), dict.fromkeys(COLUMNS, 0.0))
        added = {"executions": 1, "elapsed": mean_us, "cpu": mean_us / 2, "gets": gets, "rows": 1, "fetches": 1, **more}
        for name, each in added.items():
            one[name] += times * each

    def touched(self, name: str, kind: str, **counted: float) -> None:
        """Add to the counters of a segment."""
        one = self.segments.setdefault((name, kind), {})
        for counter, by in counted.items():
            one[counter] = one.get(counter, 0) + round(by)

    def minute(
        self,
        *,
        a1_us: float = 2000,
        b2_us: float = 500,
        sync_us: float = 900,
        write_us: float = 500,
        plan: int = 11,
        gets: float = 40,
        **more: float,
    ) -> None:
        """Add a minute of load: 6,000 executions of one statement, 2,000 of another, and commits that wait for logs."""
        self.at_s += MINUTE_S
        self.ran("a1", plan, 6000, a1_us, gets, **more)
        self.ran("b2", 21, 2000, b2_us, 6, **({"cpu": more["cpu"] / 4} if "cpu" in more else {}))
        self.count("user commits", 2000)
        self.count("redo size", 4e6)
        self.count("logons cumulative", 6)
        self.count("parse count (hard)", 12)
        self.times["hard parse elapsed time"] += 24_000
        self.waited("db file sequential read", "User I/O", 600, 400)
        self.touched("ORDERS", "TABLE", logical_reads=6000 * 4, row_lock_waits=1)
        self.touched("ORDERS_CUST", "INDEX", logical_reads=6000 * 3)
        self.waited("log file sync", "Commit", 2000, sync_us)
        self.waited("log file parallel write", "System I/O", 1500, write_us, foreground=False)

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return the current rows of the views."""
        statement = ("executions", "elapsed", "cpu", "io", "lock", "concurrency", "gets", "reads", "writes", "rows")
        counters = "logical_reads physical_reads physical_writes block_changes buffer_busy itl_waits row_lock_waits"
        at_us = T0 + self.at_s * 1_000_000
        found = state()
        found["instance"] = [(7, "2020", 1, "ORCL", "h1", "19.0.0.0.0", self.started, at_us, "PRIMARY", 3)]
        found["sysstat"] = [(at, name, 1, value) for at, (name, value) in enumerate(sorted(self.statistics.items()))]
        found["sys_time_model"] = [(at, name, value) for at, (name, value) in enumerate(self.times.items())]
        found["system_event"] = [
            (at, name, kind, waits, 0, us, fg, fg_us)
            for at, (name, (kind, waits, us, fg, fg_us)) in enumerate(sorted(self.events.items()))
        ]
        found["event_histogram_micro"] = []
        found["segment_statistics"] = [
            (3, 4, at, at, "APP", name, None, kind, *(one.get(counter, 0) for counter in counters.split()))
            for at, ((name, kind), one) in enumerate(sorted(self.segments.items()), 70)
        ]
        found["sql"] = [
            (name, plan, "7", *(round(one[column]) for column in statement), round(one["fetches"]), 0)
            for (name, plan), one in self.sql.items()
        ]
        found["parameter"] = [(name, value, "FALSE", "FALSE") for name, value in self.parameters.items()]
        found["sql_text"] = [(name, text) for name, text in self.texts.items()]
        return found


def slower_plan(made: Made) -> None:
    made.minute(a1_us=30_000, plan=99, gets=4000)


def dropped_index(made: Made) -> None:
    slower_plan(made)
    made.segments.pop(("ORDERS_CUST", "INDEX"), None)


def row_locks(made: Made) -> None:
    made.minute(a1_us=12_000, lock=10_000)
    made.waited("enq: TX - row lock contention", "Application", 6000, 10_000)
    made.touched("ORDERS", "TABLE", row_lock_waits=6000)


def slow_device(made: Made) -> None:
    made.minute(sync_us=20_000, write_us=18_000)


def slow_writer(made: Made) -> None:
    made.minute(sync_us=20_000)


def slow_reads(made: Made) -> None:
    made.minute(a1_us=22_000, io=20_000, reads=2)
    made.waited("db file sequential read", "User I/O", 12_000, 10_000)


def literals(made: Made) -> None:
    made.minute()
    made.count("parse count (hard)", 3000)
    made.times["hard parse elapsed time"] += 60_000_000


def spill(made: Made) -> None:
    made.minute(a1_us=40_000, io=30_000, writes=200)
    made.waited("direct path write temp", "User I/O", 6000, 3000)


def storm(made: Made) -> None:
    made.minute()
    made.count("logons cumulative", 1200)


def full_log(made: Made) -> None:
    made.minute(a1_us=9000)
    made.waited("log file switch (checkpoint incomplete)", "Configuration", 200, 200_000)
    made.count("redo size", 4e9)


def restart(made: Made) -> None:
    if made.started.startswith("2026-11-01"):
        made.started = "2026-11-20 01:00:00"
        made.sql.clear()
        made.events.clear()
    made.minute(a1_us=8000, reads=20, io=6000)
    made.count("physical reads", 120_000)


def release(made: Made) -> None:
    made.minute()
    made.texts["c3"] = "select count(*) from orders o join stock s on s.id = o.item"
    made.ran("c3", 31, 600, 90_000, 900)


def hot_block(made: Made) -> None:
    made.minute(a1_us=11_000, concurrency=9000)
    made.waited("buffer busy waits", "Concurrency", 5000, 9000)
    made.touched("ORDERS", "TABLE", buffer_busy=5000)


def no_processor(made: Made) -> None:
    made.minute(a1_us=8000, b2_us=2000, cpu=1000)


def heads(
    store: Store, snap: Snap, plant: Callable[[Made], None], before: Callable[[Made], None] = Made.minute
) -> list[TableRow]:
    """Return the first section of the comparison before and after, and of the report over both."""
    made = Made()
    before(made)
    snap(made.rows())
    for load in (*[before] * PARTS, *[plant] * PARTS):
        load(made)
        snap(made.rows())
    cut, last = PARTS + 1, 2 * PARTS + 1
    periods = [period(store, f"snap:{a}..{b}") for a, b in ((1, cut), (cut, last))]
    with Interval(store, find(store, "1"), find(store, str(last))) as interval:
        return [compare(store, *periods)["sections"][0], report(interval)["sections"][0]]


def first(head: JsonObject) -> str:
    return str(head["tables"][0]["rows"][0]["what"]) if head["tables"] and head["tables"][0]["rows"] else "nothing"


def soak(plant: Callable[[Made], None], said: str) -> Any:
    """Return the parameters of a case for the soak; each case takes a second."""
    return pytest.param(plant, said, marks=pytest.mark.soak)


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        (slower_plan, "plan flip: select sum(amount) from orders where cu… (a1)"),
        soak(dropped_index, "index APP.ORDERS_CUST is gone"),
        soak(row_locks, "sessions wait for each other's row locks"),
        (slow_device, "log writes became slow"),
        soak(slow_writer, "commits wait longer, log writes do not"),
        soak(slow_reads, "reads became slow"),
        soak(literals, "statements are parsed hard"),
        soak(spill, "sorts and hashes spill to temporary files: select sum(amount)"),
        soak(storm, "many more sessions begin"),
        soak(full_log, "the log is full until a checkpoint ends"),
        soak(restart, "the instance was restarted, its cache was cold"),
        soak(release, "new statement: select count(*) from orders o join"),
        soak(hot_block, "sessions want the same blocks"),
        soak(no_processor, "calls take longer at the same work: processors are slower"),
    ],
)
def test_a_planted_cause_is_named_first(store: Store, snap: Snap, plant: Callable[[Made], None], said: str) -> None:
    found = heads(store, snap, plant)
    for head in found:
        print(head["about"], head["notes"], *(row for table in head["tables"] for row in table["rows"]), sep="\n")
    assert [first(head)[: len(said)] for head in found] == [said, said]


def test_where_nothing_changed_nothing_is_named(store: Store, snap: Snap) -> None:
    assert [first(head) for head in heads(store, snap, Made.minute)] == ["nothing", "nothing"]


def test_an_index_that_was_hardly_read_is_no_cause_of_another_plan(store: Store, snap: Snap) -> None:
    def before(made: Made) -> None:
        made.minute()
        made.touched("UNUSED", "INDEX", logical_reads=1)

    def plant(made: Made) -> None:
        slower_plan(made)
        made.segments.pop(("UNUSED", "INDEX"), None)

    for head in heads(store, snap, plant, before):
        assert first(head).startswith("plan flip") and head["tables"][0]["rows"][0]["when"].startswith("before ")


def test_the_collectors_own_queries_are_known_by_their_text(store: Store, snap: Snap) -> None:
    first_one, last = snap(state()), snap(state(100, grown=1))
    with Interval(store, first_one, last) as interval:
        change = OracleChange(interval, interval)
        assert all(change.is_ours(without_literals(script(name).sql[:1000])) for name in script_names())
        assert not change.is_ours("select value from v$sysstat")
