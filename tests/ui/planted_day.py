"""A store with a planted day of a synthetic PostgreSQL server, for the pages in a browser.

    python tests/ui/planted_day.py FOLDER       # `make demo-ui`: two days at one a minute, in a minute

On the second day an index is dropped at 10:12 and made again at 10:40, a session that idles in its transaction holds
up a queue from 14:03 to 14:11, and a release at 16:30 asks for prices one by one.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dbdyno.snapshot.engines.postgres.sampler import ACTIVITY
from dbdyno.snapshot.engines.registry import blocked_columns
from dbdyno.snapshot.engines.view import Column, View
from dbdyno.snapshot.plans.command import PlanOptions, page_of_logs
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.ui.preparer import prepare

TARGET = "shop-db:5432"
DAY_S = 86_400
BEGIN_S = int(datetime(2026, 11, 25, tzinfo=UTC).timestamp())
"""Start of the first of two days; the second is the planted one [s]."""
LOOKS = 12
"""Number of looks at the sessions per minute."""
DATABASE = ("xact_commit", "xact_rollback", "blks_hit", "blks_read", "tup_returned", "tup_fetched", "tup_inserted")
DATABASE += ("tup_updated", "tup_deleted", "temp_bytes", "deadlocks")
COUNTED = ("calls", "total_exec_time", "rows", "shared_blks_hit", "shared_blks_read")
NEVER = ("shared_blks_dirtied", "shared_blks_written", "temp_blks_written")
"""Counters that every server has, and that are always 0 here."""
TABLE = ("seq_scan", "seq_tup_read", "idx_scan", "idx_tup_fetch")
TABLE += ("n_tup_ins", "n_tup_upd", "n_tup_del", "n_tup_hot_upd")
ORDERS, STOCK, LINES, COUNT, PRICE, REPRICE = 1001, 1002, 1003, 1004, 1005, 1006
TEXTS = {
    ORDERS: "select * from orders where customer_id = $1 order by placed_at desc limit $2",
    STOCK: "update stock set available = available - $1 where item_id = $2",
    LINES: "insert into order_lines (order_id, item_id, quantity) values ($1, $2, $3)",
    COUNT: "select count(*) from carts where updated_at > now() - interval $1",
    PRICE: "select price from prices where item_id = $1",
    REPRICE: "update stock set price = price * $1 where category = $2",
}
TABLES = {1: "orders", 2: "stock", 3: "order_lines", 4: "carts", 5: "prices"}
INDEXES = {11: (1, "orders_pkey"), 12: (1, "orders_customer_id_idx"), 13: (2, "stock_pkey"), 14: (5, "prices_pkey")}
DROPPED = 12
ROOT = 9001


def column(name: str, kind: str = "counter", unit: str = "count", typed: str = "BIGINT") -> Column:
    return Column(name, kind, unit, typed)  # type: ignore[arg-type]


def text(name: str) -> Column:
    return column(name, "text", "text", "VARCHAR")


@dataclass
class Day:
    """The server's counters, and the events planted at minutes of the second day."""

    folder: Path
    every_s: int = 60
    dice: random.Random = field(default_factory=lambda: random.Random(20261126))
    words: str = ""
    """Text added to every name and text that an outsider could choose."""
    started_us: int = 1
    """Start time of the server [us]."""

    def __post_init__(self) -> None:
        self.store = Store(self.folder)
        self.database = dict.fromkeys(DATABASE, 0)
        self.statements = {one: dict.fromkeys(COUNTED, 0.0) for one in (ORDERS, STOCK, LINES, COUNT, REPRICE)}
        self.tables = {one: dict.fromkeys(TABLE, 0) for one in TABLES}
        self.indexes = dict.fromkeys(INDEXES, 0)
        self.before: Snapshot | None = None

    def make(self, first_s: int = BEGIN_S, last_s: int = BEGIN_S + 2 * DAY_S) -> None:
        """Take the snapshots of a period."""
        for at_s in range(first_s, last_s + 1, self.every_s):
            self.step(at_s)

    def step(self, at_s: int) -> Snapshot:
        """Take one snapshot, with the work of the time before it."""
        minute = (at_s - BEGIN_S - DAY_S) / 60
        seen = self._work(minute, self.every_s / 60)
        facts = {
            "version": "16.16",
            "version_num": 160016,
            "databases": ["shop"],
            "started_us": self.started_us,
            "wal_bytes": at_s * 9000,
        }
        made = self.store.add(
            [*self._counters(), *self._samples(at_s, seen, minute)],
            engine="postgres",
            target=TARGET + self.words,
            at_ns=at_s * 10**9,
            facts=facts,
            cost={"looks": LOOKS, "collect_s": 0.02},
            before=self.before,
        )
        self.before = made
        return made

    def _work(self, minute: float, share: float) -> dict[str, float]:
        """Count the work of a period; return the active sessions by their activity."""
        load = share * (1 + 0.6 * math.sin((minute / 1440 - 0.3) * 2 * math.pi)) * self.dice.uniform(0.93, 1.07)
        dropped, convoy, released = 612 < minute <= 640, 843 < minute <= 851, minute > 990
        self._call(ORDERS, 400 * load, 170.0 if dropped else 0.4, 1, 9000 if dropped else 6)
        self._call(STOCK, 300 * load * (0.2 if convoy else 1), 9000.0 if convoy else 1.1, 2, 5)
        self._call(LINES, 600 * load, 0.7, 3, 4)
        self._call(COUNT, 4 * load, 350.0, 4, 800)
        if released:
            self.statements.setdefault(PRICE, dict.fromkeys(COUNTED, 0.0))
            self._call(PRICE, 14_000 * load, 1.6, 5, 4)
        if convoy:
            self._call(REPRICE, 1, 400.0, 2, 300)
        self.tables[1]["seq_scan" if dropped else "idx_scan"] += round(400 * load)
        self.tables[1]["seq_tup_read" if dropped else "idx_tup_fetch"] += round(
            (80_000_000 if dropped else 4000) * load
        )
        self.tables[3]["n_tup_ins"] += round(600 * load)
        self.tables[2]["n_tup_upd"] += round(300 * load)
        for name, grows in {"xact_commit": 1300, "blks_hit": 40_000, "blks_read": 300, "tup_fetched": 9000}.items():
            self.database[name] += round(grows * load * (8 if dropped and "blks" in name else 1))
        self.indexes[11] += round(40 * load)
        self.indexes[13] += round(300 * load)
        self.indexes[14] += round(14_000 * load) if released else 0
        if dropped:
            self.indexes.pop(DROPPED, None)
        else:
            self.indexes[DROPPED] = self.indexes.get(DROPPED, 0) + round(400 * load)
        level = load / share
        return {
            "orders": 2.2 * level if dropped else 0.1 * level,
            "stock": 0.1 * level,
            "queue": min(14.0, 2 * (minute - 843)) if convoy else 0.0,
            "lines": 0.5 * level,
            "carts": 0.3 * level,
            "prices": 1.4 * level if released else 0.0,
        }

    def _call(self, statement: int, calls: float, ms: float, rows: int, blocks: int) -> None:
        row = self.statements[statement]
        for name, value in zip(COUNTED, (1, ms, rows, blocks, blocks / 40), strict=True):
            row[name] += round(calls) * value if name == "total_exec_time" else round(round(calls) * value)

    def _counters(self) -> Iterator[View]:
        more = self.words
        database = [
            column("datid", "key"),
            text("datname"),
            column("stats_reset", "gauge", "us"),
            *map(column, DATABASE),
        ]
        yield View(
            "pg_stat_database",
            "database",
            tuple(database),
            [(5, "shop" + more, None, *self.database.values())],
            "datid",
        )
        named = [column("datid", "key"), column("relid", "key"), text("datname"), text("schemaname"), text("relname")]
        rows = [
            (5, one, "shop" + more, "public", TABLES[one] + more, *row.values()) for one, row in self.tables.items()
        ]
        yield View("pg_stat_user_tables", "objects", (*named, *map(column, TABLE)), rows, "datid")
        index = [column("datid", "key"), column("relid", "key"), column("indexrelid", "key"), text("datname")]
        index += [text("schemaname"), text("relname"), text("indexrelname"), column("idx_scan"), column("idx_tup_read")]
        found = [
            (
                5,
                INDEXES[one][0],
                one,
                "shop",
                "public",
                TABLES[INDEXES[one][0]] + more,
                INDEXES[one][1] + more,
                scans,
                scans,
            )
            for one, scans in self.indexes.items()
        ]
        yield View("pg_stat_user_indexes", "objects", tuple(index), found, "datid")
        keys = tuple(column(name, "key") for name in ("userid", "dbid", "queryid"))
        timed = tuple(
            column(n, unit="ms" if n.endswith("time") else "count", typed="DOUBLE" if n.endswith("time") else "BIGINT")
            for n in (*COUNTED, *NEVER)
        )
        counts = [
            (10, 5, one, *(v if n == "total_exec_time" else int(v) for n, v in row.items()), 0, 0, 0)
            for one, row in self.statements.items()
        ]
        yield View("pg_stat_statements", "statements", (*keys, *timed), counts, appearance="entry")
        info = (column("dealloc", "gauge"), column("stats_reset", "gauge", "us"))
        yield View("pg_stat_statements_info", "statements_info", info, [(0, 1)], appearance="fixed")
        shown = [("track_io_timing", "on", ""), ("shared_buffers", "16384", "8kB"), ("work_mem" + more, "4096", "kB")]
        shown += [("log_timezone", "Europe/Berlin", "")]
        named = (column("name", "key", "text", "VARCHAR"), text("setting"), text("unit"), text("source"))
        yield View("pg_settings", "now", named, [(*one, "configuration file") for one in shown])
        texts = [(one, f"f{one}", TEXTS[one] + more) for one in self.statements]
        yield View("statement_texts", "now", (column("queryid", "key"), text("fingerprint"), text("query")), texts)

    def _samples(self, at_s: int, seen: dict[str, float], minute: float) -> Iterator[View]:
        """Yield the samples of the last minute."""
        doing: dict[str, tuple[int, str, list[tuple[str | None, str | None]]]] = {
            "orders": (ORDERS, "web", [(None, None), (None, None), ("IO", "DataFileRead")]),
            "stock": (STOCK, "web", [(None, None)]),
            "queue": (STOCK, "web", [("Lock", "transactionid")]),
            "lines": (LINES, "web", [(None, None), ("IO", "WALSync"), ("LWLock", "WALWrite")]),
            "carts": (COUNT, "reports", [(None, None), ("IO", "DataFileRead")]),
            "prices": (PRICE, "web", [(None, None), (None, None), ("Client", "ClientRead")]),
        }
        rows: list[tuple[Any, ...]] = []
        pairs: list[tuple[Any, ...]] = []
        for look in range(LOOKS):
            at_us = (at_s - self.every_s) * 10**6 + (look + 1) * self.every_s * 10**6 // LOOKS
            pid = 4000
            for name, mean in seen.items():
                statement, application, waits = doing[name]
                for _ in range(int(mean + self.dice.random())):
                    pid += 1
                    kind, event = self.dice.choice(waits)
                    rows.append(self._seen(at_us, pid, application, statement, kind, event, name))
                    if name == "queue":
                        pairs.append(self._pair(at_us, pid, minute))
        yield View("activity", "now", ACTIVITY, rows)
        yield View("blocked", "now", blocked_columns("postgres"), pairs)

    def _seen(
        self, at_us: int, pid: int, application: str, statement: int, kind: str | None, event: str | None, name: str
    ) -> tuple[Any, ...]:
        known = {
            "at_us": at_us,
            "session": pid,
            "kind": "client backend",
            "datname": "shop" + self.words,
            "usename": ("report" if application == "reports" else "shop") + self.words,
            "application": application + self.words,
            "statement": statement,
            "state": "active",
            "event_type": kind,
            "event": event,
            "transaction_us": 400_000,
            "client": f"10.0.0.{pid % 7}",
            "statement_us": 300_000,
            "state_us": 300_000,
        }
        return tuple(known.get(one.name) for one in ACTIVITY)

    def _pair(self, at_us: int, pid: int, minute: float) -> tuple[Any, ...]:
        known = {
            "at_us": at_us,
            "session": pid,
            "blocker": ROOT,
            "locktype": "transactionid",
            "mode": "ShareLock",
            "usename": "shop" + self.words,
            "application": "web" + self.words,
            "statement": STOCK,
            "blocker_state": "idle in transaction",
            "blocker_usename": "pricing" + self.words,
            "blocker_application": "pricing-batch" + self.words,
            "blocker_statement": REPRICE,
            "blocker_transaction_us": round((minute - 842) * 60e6),
            "statement_us": 4_000_000,
        }
        return tuple(known.get(one.name) for one in blocked_columns("postgres"))


LOGGED_S = (BEGIN_S + DAY_S + 9 * 3600 + 1800, BEGIN_S + DAY_S + 11 * 3600)
"""The stretch of the planted day in which auto_explain logged the query on orders, every ten seconds."""
PLANS = {
    False: """\
Limit  (cost=24.12..24.15 rows=10 width=64) (actual time=0.352..0.361 rows=10 loops=1)
  ->  Sort  (cost=24.12..24.20 rows=31 width=64) (actual time=0.350..0.355 rows=10 loops=1)
        Sort Key: placed_at DESC
        ->  Index Scan using orders_customer_id_idx on orders  (cost=0.43..23.40 rows=31 width=64)\
 (actual time=0.020..0.310 rows=410 loops=1)
              Index Cond: (customer_id = 4711)""",
    True: """\
Limit  (cost=4431.12..4431.15 rows=10 width=64) (actual time=168.900..168.910 rows=10 loops=1)
  ->  Sort  (cost=4431.12..4431.20 rows=31 width=64) (actual time=168.890..168.900 rows=10 loops=1)
        Sort Key: placed_at DESC
        ->  Seq Scan on orders  (cost=0.00..4411.00 rows=31 width=64)\
 (actual time=0.040..168.200 rows=410 loops=1)
              Filter: (customer_id = 4711)""",
}
"""Plans of the query on orders: with its index (False), and without it (True)."""


def log_lines(first_s: int = LOGGED_S[0], last_s: int = LOGGED_S[1]) -> Iterator[str]:
    """Yield the lines that auto_explain logged for the query on orders."""
    for at_s in range(first_s, last_s, 10):
        dropped = 612 * 60 < at_s - BEGIN_S - DAY_S <= 640 * 60
        ms = 168.9 if dropped else 0.37
        at = datetime.fromtimestamp(at_s, UTC)
        plan = PLANS[dropped].replace("\n", "\n\t")
        yield (
            f"{at:%Y-%m-%d %H:%M:%S}.000 UTC [4001] LOG:  duration: {ms:.3f} ms  plan:\n\tQuery Text: {TEXTS[ORDERS]}\n"
            f"\t{plan}\n\tQuery Identifier: {ORDERS}\n"
        )


def keep_plans(store: Store, folder: Path) -> None:
    """Reads the log of the day into the store, as `dbdyno snap plans --log` does."""
    path = folder / "postgresql.log"
    path.write_text("".join(log_lines()))
    page_of_logs(store, [path], PlanOptions(target=TARGET))


def main() -> None:
    """Write the two days to the folder in the command line, with the sums that `dbdyno snap watch` would have saved."""
    folder = Path(sys.argv[1])
    day = Day(folder / "snaps")
    day.make()
    keep_plans(day.store, folder)
    snapshots = list(day.store)
    prepare(day.store, snapshots[0], snapshots[-1])


if __name__ == "__main__":
    main()
