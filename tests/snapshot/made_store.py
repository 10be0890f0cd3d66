"""A store of PostgreSQL snapshots made without a server: statements, tables and databases that grow by given steps."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from dbdyno.base.json_types import JsonObject
from dbdyno.snapshot.causes import change_of
from dbdyno.snapshot.causes.change import Change
from dbdyno.snapshot.engines.view import Column, View
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.store import manifest
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.store.parquet import Writer

DATABASE = ("xact_commit", "xact_rollback", "blks_hit", "blks_read", "tup_returned", "tup_fetched", "tup_inserted")
DATABASE += ("tup_updated", "tup_deleted", "temp_bytes", "deadlocks")
STATEMENT = ("calls", "total_exec_time", "rows", "shared_blks_hit", "shared_blks_read")
STATEMENT += ("shared_blks_dirtied", "shared_blks_written", "temp_blks_written")
TABLE = ("seq_scan", "seq_tup_read", "idx_scan", "idx_tup_fetch")
TABLE += ("n_tup_ins", "n_tup_upd", "n_tup_del", "n_tup_hot_upd")


def key(name: str) -> Column:
    return Column(name, "key", "count", "BIGINT")


def text(name: str) -> Column:
    return Column(name, "text", "text", "VARCHAR")


def counters(names: tuple[str, ...]) -> tuple[Column, ...]:
    return tuple(
        Column(
            name,
            "counter",
            "ms" if name.endswith("_time") else "count",
            "DOUBLE" if name.endswith("_time") else "BIGINT",
        )
        for name in names
    )


class MadeServer:
    """Counters of a synthetic server; `step` adds to them and takes a snapshot."""

    def __init__(self, folder: Path, *, every_s: int = 60) -> None:
        self.store = Store(folder)
        self.every_s = every_s
        self.at_s = 1_800_000_000
        self.database = dict.fromkeys(DATABASE, 100)
        self.statements: dict[int, dict[str, float]] = {}
        self.tables: dict[int, dict[str, float]] = {}
        self.names: dict[int, str] = {}
        self.reset_us: int | None = None
        self.dealloc = 0
        self.statements_reset_us = 1
        self.settings = {"track_io_timing": "off"}
        self.texts: dict[int, str] = {}
        self.prints: dict[int, str] = {}
        self.before: Snapshot | None = None

    def call(self, statement: int, calls: int, ms: float, **more: float) -> None:
        """Add calls of a statement, with their total time [ms]."""
        row = self.statements.setdefault(statement, dict.fromkeys(STATEMENT, 0))
        for name, value in {"calls": calls, "total_exec_time": ms, "rows": calls, **more}.items():
            row[name] += value

    def touch(self, table: int, **more: float) -> None:
        """Add to the counters of a table."""
        row = self.tables.setdefault(table, dict.fromkeys(TABLE, 0))
        for name, value in more.items():
            row[name] += value

    def step(self, commits: int = 600) -> Snapshot:
        """Take a snapshot one period after the last one; unchanged views refer to the last one's files, as in a real
        store.
        """
        self.at_s += self.every_s
        self.database["xact_commit"] += commits
        self.database["blks_hit"] += 10 * commits
        self.before = self.store.add(
            self.views(),
            engine="postgres",
            target="db:1",
            at_ns=self.at_s * 10**9,
            facts=self.facts(),
            before=self.before,
        )
        return self.before

    @contextlib.contextmanager
    def change(self, taken: Sequence[Snapshot], at: int) -> Iterator[Change]:
        """The change between the intervals that end and begin with the snapshot at this place."""
        with Interval(self.store, taken[0], taken[at]) as before, Interval(self.store, taken[at], taken[-1]) as after:
            yield change_of(before, after)

    def write(self, number: int) -> None:
        """Do the same as `step`, under a number that the caller chooses, and fast enough for tens of thousands."""
        self.at_s += self.every_s
        self.database["xact_commit"] += 600
        folder = self.store.folder / f"{number:06d}"
        folder.mkdir(parents=True)
        with Writer(folder) as writer:
            records = {view.name: writer.write(view, self.before) for view in self.views()}
        made = {
            "number": number,
            "engine": "postgres",
            "target": "db:1",
            "at_ns": self.at_s * 10**9,
            "note": "",
            "facts": self.facts(),
            "cost": {},
            "views": records,
        }
        manifest.write(self.store.folder, made)
        self.before = Snapshot(self.store.folder, made)

    def facts(self) -> JsonObject:
        return {"version": "16.1", "databases": ["app"], "started_us": 1, "wal_bytes": self.at_s}

    def views(self) -> list[View]:
        since = Column("stats_reset", "gauge", "us", "BIGINT")
        return [
            View(
                "pg_stat_database",
                "database",
                (key("datid"), text("datname"), since, *counters(DATABASE)),
                [(5, "app", self.reset_us, *self.database.values())],
                "datid",
            ),
            View(
                "pg_stat_user_tables",
                "objects",
                (key("datid"), key("relid"), text("datname"), text("schemaname"), text("relname"), *counters(TABLE)),
                [(5, n, "app", "public", self.names.get(n, f"t{n}"), *row.values()) for n, row in self.tables.items()],
                "datid",
            ),
            View(
                "pg_stat_statements",
                "statements",
                (key("userid"), key("dbid"), key("queryid"), *counters(STATEMENT)),
                [(10, 5, n, *row.values()) for n, row in self.statements.items()],
                appearance="entry",
            ),
            View(
                "pg_stat_statements_info",
                "statements_info",
                (Column("dealloc", "gauge", "count", "BIGINT"), Column("stats_reset", "gauge", "us", "BIGINT")),
                [(self.dealloc, self.statements_reset_us)],
                appearance="fixed",
            ),
            View(
                "pg_settings",
                "now",
                (Column("name", "key", "text", "VARCHAR"), text("setting")),
                list(self.settings.items()),
            ),
            View(
                "statement_texts",
                "now",
                (key("queryid"), text("fingerprint"), text("query")),
                [(n, self.prints.get(n, f"f{n}"), self.texts.get(n, f"select {n} from t")) for n in self.statements],
            ),
        ]
