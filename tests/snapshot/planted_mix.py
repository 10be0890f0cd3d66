"""A mixed load with a cause planted in the middle. The client times every statement, so that the cause's share is known
independently of the server's counters.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import psycopg
from snapshot_help import Lab

from dbdyno.base.errors import SnapshotError
from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.judge.snapshots import compare
from dbdyno.snapshot.reading.periods import period
from dbdyno.snapshot.taking.take import open_collector, take
from standby import Standby

SLICES, SLICE_S = 6, 0.4
"""Sub-intervals of each period, and the minimum length of one, because the load is an open loop [s]."""
USUAL = (
    "drop role if exists shop",
    "create role shop login",
    "create table item (id int primary key, kind int, price int)",
    "insert into item select n, n % 50, n from generate_series(1, 5000) n",
    "create table sale (id int primary key, item int, cust int, amount int)",
    "insert into sale select n, n % 5000, n / 10, n from generate_series(1, 20000) n",
    "create index sale_cust on sale (cust)",
    "create table journal (at timestamptz default now(), what text)",
    "grant all on item, sale, journal to shop",
    "vacuum analyze",
)
BACKGROUND = (
    ("select price from item where id = 4711", 40),
    ("select sum(amount) from sale where cust = 77 and amount > 0", 20),
    ("select kind, count(*) from item group by kind", 4),
    ("insert into journal (what) values ('sold')", 5),
)


class Mix:
    """Sessions of one load. `spent` is the client's time for each statement, by the label "planted" or the statement's
    text [s].
    """

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.spent: Counter[str] = Counter()
        self.standby: Standby | None = None

    @contextlib.contextmanager
    def session(self, **more: str) -> Iterator[psycopg.Connection[Any]]:
        """Open a session of the load, which ends with the context, so that its work is counted. It does not wait for
        commits, which belong to no statement's time, unless other `options` are given.
        """
        given = {"options": "-c synchronous_commit=off", **more}
        with contextlib.closing(self.lab.connect(**given)) as conn:
            yield conn

    def ask(self, conn: psycopg.Connection[Any], statement: str, times: int = 1, label: str = "") -> None:
        """Execute a statement `times` times and add up its time under the label."""
        for _ in range(times):
            began = time.monotonic()
            try:
                conn.execute(statement)  # type: ignore[arg-type]
            finally:
                self.spent[label or statement] += time.monotonic() - began

    def plant(self, *statements: str) -> Callable[[], None]:
        """Return a function that executes statements that plant the cause; they are not counted as load."""
        return lambda: self.lab.run("set pg_stat_statements.track = 'none'", *statements)

    def usual(self) -> None:
        """Run the background load that every case has."""
        with self.session() as conn:
            for statement, times in BACKGROUND:
                self.ask(conn, statement, times)

    def run(self, *statements: str, times: int = 1, **more: str) -> Callable[[], None]:
        """Return a load that executes these statements `times` times, labelled as planted."""

        def load() -> None:
            with self.session(**more) as conn:
                for statement in statements:
                    self.ask(conn, statement, times, "planted")

        return load


@dataclass
class Case:
    """What is planted. `first` begins what is named first, the pattern `title` the headline (which says `Slower:` and
    `first`, unless it is given); `says` is in its evidence.
    `share`: whether what clients saw tells the share (no, where they wait outside of statements)."""

    load: Callable[[], None]
    plant: Callable[[], None]
    first: str
    title: str = ""
    _: KW_ONLY
    after: Callable[[], None] | None = None
    says: str = ""
    share: bool = True
    sampled: bool = False
    undo: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.title = self.title or re.escape(f"Slower: {self.first}")


@dataclass
class Found:
    """First results of a comparison of the two periods, and the share that the clients measured."""

    first: JsonObject
    verdict: JsonObject
    rows: list[TableRow]
    truth: float | None
    spent: list[Counter[str]] = field(default_factory=list)


def found(mix: Mix, case: Case, engine: str = "postgres", pause_s: float = 0.02) -> Found:
    """Plant the cause, and compare the periods before and after it."""
    try:
        numbers, spent = _snapshots(mix, case, engine, pause_s)
    finally:
        case.undo()
    store = mix.lab.store
    ends = ((numbers[0], numbers[SLICES]), (numbers[SLICES], numbers[-1]))
    model = compare(store, *(period(store, f"snap:{a}..{b}") for a, b in ends))
    head = model["sections"][0]
    rows = head["tables"][0]["rows"] if head["tables"] else []
    return Found(rows[0] if rows else {}, model["verdict"], rows, _truth(spent), spent)


def _snapshots(mix: Mix, case: Case, engine: str, pause_s: float) -> tuple[list[int], list[Counter[str]]]:
    numbers, spent = [], []
    with open_collector(mix.lab.dsn, mix.lab.options) as collector:
        sampler = collector.sampler(0.02)
        if case.sampled:
            sampler.start()
        try:
            _slice(mix, case.load)
            for step in range(2 * SLICES + 1):
                if step == SLICES + 1:
                    case.plant()
                if step in (1, SLICES + 1):
                    mix.spent.clear()
                if step:
                    _slice(mix, case.load if step <= SLICES else case.after or case.load)
                if step in (SLICES, 2 * SLICES):
                    spent.append(mix.spent.copy())
                time.sleep(pause_s)
                seen = sampler.take() if case.sampled else None
                try:
                    numbers.append(take(collector, mix.lab.store, engine_name=engine, sampled=seen).number)
                except SnapshotError:  # the server was restarted in between
                    numbers.append(take(collector, mix.lab.store, engine_name=engine, sampled=seen).number)
        finally:
            if case.sampled:
                sampler.stop()
    return numbers, spent


def _slice(mix: Mix, load: Callable[[], None]) -> None:
    until = time.monotonic() + SLICE_S
    mix.usual()
    load()
    time.sleep(max(until - time.monotonic(), 0.0))


def _truth(spent: list[Counter[str]]) -> float | None:
    """Return the planted statements' share of the additional time, as the clients measured it."""
    before, after = spent
    gains = {name: max(after[name] - before[name], 0.0) for name in after}
    return gains.get("planted", 0.0) / sum(gains.values()) if sum(gains.values()) > 0 else None
