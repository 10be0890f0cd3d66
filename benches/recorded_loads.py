"""Six loads without a change on a PostgreSQL of our own, recorded in snapshots: periods that are equal but real."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from dbdyno.bench.postgres.server import Postgres, open_target
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.store.folder import Store
from dbdyno.snapshot.taking.take import open_collector, take

SLOT_S, TURNS = 0.5, 5
SETTINGS = {"shared_preload_libraries": "pg_stat_statements", "shared_buffers": "64MB", "synchronous_commit": "off"}
OBJECTS = (
    "create extension pg_stat_statements",
    "create table item (id int primary key, kind int, price int)",
    "insert into item select n, n % 50, n from generate_series(1, 5000) n",
    "create table sale (id int primary key, item int, cust int, amount int)",
    "insert into sale select n, n % 5000, n / 10, n from generate_series(1, 40000) n",
    "create index sale_cust on sale (cust)",
    "create table journal (at timestamptz default now(), what text)",
    "vacuum analyze",
)
MIX = (
    ("select price from item where id = %s", 24),
    ("select sum(amount) from sale where cust = %s and amount > 0", 12),
    ("select kind, count(*) from item where id > %s group by kind", 1),
    ("insert into journal (what) values (repeat('x', %s %% 50))", 3),
)
NEAR, FAR = "select sum(amount) from sale where id between 1 and %s", "select sum(amount) from sale where amount <> %s"
JOB = "select count(*) from sale s, item i where i.id = s.item and i.kind <> %s"


class Load:
    """One of the loads, a slot at a time."""

    def __init__(self, kind: str, rng: Any) -> None:
        self.kind, self.rng = kind, rng
        self._burst, self._missing = False, False

    def slot(self, session: psycopg.Connection[Any], at: float) -> None:
        """Half a second of offered load; `at` goes from 0 to 1 over the two periods that are compared."""
        burst = self._burst = self._burst if self.rng.random() < 0.5 else self.rng.random() < 1 / 3
        missing = self._missing = self._missing if self.rng.random() < 0.5 else self.rng.random() < 0.5
        rate = {"bursty": 4.0 if burst else 1.0, "slope": 1 + at, "almost idle": 0.05}.get(self.kind, 1.0)
        job = self.kind == "batch" and self.rng.random() < 0.2
        began = time.monotonic()
        for turn in range(TURNS):
            for statement, times in MIX:
                for _ in range(self.rng.poisson(times * rate)):
                    session.execute(statement, [int(self.rng.integers(1, 4000))])
            if self.kind == "bimodal":
                session.execute(FAR if missing else NEAR, [int(self.rng.integers(1, 100))])
            if job and turn == 0:
                for _ in range(4):
                    session.execute(JOB, [int(self.rng.integers(50))])
            time.sleep(max(began + (turn + 1) * SLOT_S / TURNS - time.monotonic(), 0.0))


@contextlib.contextmanager
def server() -> Iterator[Postgres]:
    """A server with the tables of the loads."""
    with open_target(None, settings=SETTINGS) as target:
        with target.connect() as session:
            for statement in OBJECTS:
                session.execute(statement)  # type: ignore[arg-type]
        yield target


def pairs(
    target: Postgres, kind: str, seconds: float, slots: int, rng: Any
) -> Iterator[tuple[Store, tuple[int, int], tuple[int, int]]]:
    """Pairs of neighbouring periods of so many slots, for so long; the first and last snapshot of each period."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        store = Store(Path(folder) / "snaps")
        dsn = make_conninfo("", **target.libpq_parameters())
        collector = stack.enter_context(open_collector(dsn, Options()))
        session = stack.enter_context(target.connect())
        load = Load(kind, rng)
        load.slot(session, 0.0)
        until = time.monotonic() + seconds
        while True:
            numbers = [take(collector, store, engine_name="postgres").number]
            for step in range(2 * slots):
                load.slot(session, step / (2 * slots))
                numbers.append(take(collector, store, engine_name="postgres").number)
            yield store, (numbers[0], numbers[slots]), (numbers[slots], numbers[-1])
            if time.monotonic() >= until:
                return
