"""A long store of made PostgreSQL snapshots, written as packs at once: a month in minutes.

The views and columns are those of a real snapshot, so that every section of a report has its rows; what a counter
holds follows from the number of the snapshot, with noise that never makes it fall. Of more than 2,000 statements those
beyond are called in one of twenty minutes. From the middle on, one statement in fifty has six times the calls.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from dbdyno.base.json_types import JsonObject
from dbdyno.base.sql_text import literal, quoted
from dbdyno.evidence.files import write_json
from dbdyno.snapshot.engines.postgres.sampler import ACTIVITY
from dbdyno.snapshot.engines.view import Column, View
from dbdyno.snapshot.reading.difference import SUBTRACTED
from dbdyno.snapshot.store import manifest
from dbdyno.snapshot.store.folder import Snapshot
from dbdyno.snapshot.store.integrity import SUMS
from dbdyno.snapshot.store.pack import GROUP
from dbdyno.snapshot.store.parquet import file_checksum

LOOKS = 60
STEPS = {
    "calls": 50,
    "rows": 50,
    "total_exec_time": 5,
    "shared_blks_hit": 500,
    "shared_blks_read": 5,
    "idx_scan": 50,
    "n_tup_ins": 2,
    "seq_scan": 1,
    "seq_tup_read": 300,
    "idx_tup_fetch": 60,
    "idx_tup_read": 60,
    "xact_commit": 600,
    "blks_hit": 5000,
    "blks_read": 20,
    "heap_blks_hit": 500,
    "heap_blks_read": 3,
    "idx_blks_hit": 400,
    "tup_returned": 900,
    "tup_fetched": 300,
    "tup_inserted": 30,
    "active_time": 900,
    "wal_records": 100,
}
"""What a counter grows by from one snapshot to the next; the others stay."""
STEADY = ("pg_settings", "statement_texts", "pg_attribute", "pg_index", "pg_extension", "pg_stats", "pg_class")
STEADY += ("pg_database", "pg_tablespace", "pg_stat_statements_info", "pg_stat_user_functions")
"""Views that do not change: their rows are those of the pack's first snapshot."""
LEFT_OUT = ("blocked", "pg_stat_progress_vacuum", "pg_stat_replication", "pg_stat_wal_receiver", "pg_replication_slots")
SETTINGS = (("track_io_timing", "off"), ("track_functions", "none"), ("pg_stat_statements.max", "100000"))
VALUES = {
    "userid": "10",
    "dbid": "5",
    "datid": "5",
    "queryid": "n",
    "toplevel": "true",
    "relid": "n % {tables}",
    "indexrelid": "10000 + n",
    "oid": "n",
    "schemaname": "'public'",
    "relname": "'t' || (n % {tables})",
    "indexrelname": "'i' || n",
    "query": "'select x' || n || ' from t' || (n % {tables})",
    "relpages": "1000 + n",
    "fingerprint": "'f' || n",
    "n_live_tup": "10000",
    "attrelid": "n % {tables}",
    "attnum": "n // {tables} + 1",
    "attname": "'c' || (n // {tables})",
    "backend_type": "'client backend'",
    "object": "'relation'",
    "context": "'c' || n",
    "name": "'n' || n",
    "dealloc": "0",
    "stats_reset": "1",
    "size_bytes": "1000000",
    "indisunique": "false",
    "indisprimary": "false",
    "indisexclusion": "false",
    "datname": "'app'",
}
SAMPLES = {
    "session": "1000 + n * 7919 % {sessions}",
    "kind": "'client backend'",
    "datname": "'app'",
    "usename": "'u' || (n % 9)",
    "application": "'web' || (n % 12)",
    "client": "'10.0.0.' || (n % 40)",
    "statement": "hash(s, n) % 400",
    "state": "case when n % 10 = 0 then 'idle in transaction' else 'active' end",
    "event_type": "case n % 5 when 0 then 'Lock' when 1 then 'IO' when 2 then 'LWLock' end",
    "event": "case n % 5 when 0 then 'tuple' when 1 then 'DataFileRead' when 2 then 'WALWrite' end",
    "transaction_us": "(n % 60) * 1000000",
    "statement_us": "(n % 60) * 500000",
    "state_us": "1000000",
}


@dataclass(frozen=True)
class Made:
    """How large the server is; of its sessions one in five is seen at each look."""

    folder: Path
    like: Snapshot
    count: int
    statements: int = 200
    sessions: int = 0
    tables: int = 100
    ends_s: int = int(time.time()) // 3600 * 3600

    def at_s(self, number: int) -> int:
        """When a snapshot was taken: ages are those of a store that is in use."""
        return self.ends_s - 60 * (self.count - number)

    def rows(self, view: str) -> int:
        """How many rows a view has."""
        known = {"pg_stat_statements": self.statements, "statement_texts": min(self.statements, 400)}
        known |= dict.fromkeys(("pg_stat_user_tables", "pg_statio_user_tables"), self.tables)
        known |= dict.fromkeys(("pg_stat_user_indexes", "pg_statio_user_indexes", "pg_index"), 2 * self.tables)
        known |= {"pg_class": self.tables, "pg_attribute": 10 * self.tables, "pg_settings": len(SETTINGS)}
        return {**known, "pg_stat_io": 30, "pg_stat_slru": 8, "activity": self.sessions // 5 * LOOKS}.get(view, 1)


def write(made: Made) -> None:
    """The store, rounded up to whole packs."""
    given = {name: record for name, record in made.like.views.items() if record["columns"] and name not in LEFT_OUT}
    views = [
        View(name, r["scope"], tuple(Column(*c) for c in r["columns"]), [], r["scope_by"], r["appearance"])
        for name, r in given.items()
        if name != "activity"
    ]
    if made.sessions:
        views.append(View("activity", "now", ACTIVITY, []))
    with duckdb.connect() as connection:
        for first in range(1, made.count + 1, GROUP):
            _pack(connection, made, views, first)


def _pack(connection: duckdb.DuckDBPyConnection, made: Made, views: list[View], first: int) -> None:
    name = f"packs/{first:06d}-{first + GROUP - 1:06d}-{first:08x}"
    folder = made.folder / name
    folder.mkdir(parents=True)
    for view in views:
        shown = ", ".join(f"({_value(made, view.name, c)})::{c.type} as {quoted(c.name)}" for c in view.columns)
        last = first if view.name in STEADY else first + GROUP - 1
        file = literal(str(folder / f"{view.name}.parquet"))
        keys = ", ".join(quoted(c.name) for c in view.columns if c.kind == "key") or "1"
        connection.execute(
            f"copy (select s::integer as snapshot_, {shown} from range({first}, {last + 1}) a(s),"
            f" range({made.rows(view.name)}) b(n) order by {keys}, 1) to {file}"
            " (format parquet, compression zstd, parquet_version v2)"
        )
    write_json(folder / SUMS, {path.name: file_checksum(path) for path in sorted(folder.glob("*.parquet"))})
    for number in range(first, first + GROUP):
        _manifest(made, views, first, number, name)


def _manifest(made: Made, views: list[View], first: int, number: int, pack: str) -> None:
    (made.folder / f"{number:06d}").mkdir()
    records: JsonObject = {
        view.name: {
            "scope": view.scope,
            "scope_by": view.scope_by,
            "appearance": view.appearance,
            "elapsed_ns": 0,
            "columns": [[c.name, c.kind, c.unit, c.type] for c in view.columns],
            "rows": made.rows(view.name),
            "file": f"{pack}/{view.name}.parquet",
            "in": first if view.name in STEADY else number,
        }
        for view in views
    }
    facts = {name: fact for name, fact in made.like.facts.items() if name != "clock"}
    facts |= {"databases": ["app"], "database": "app", "started_us": 1, "wal_bytes": made.at_s(number) * 1000}
    kept: Any = {"number": number, "engine": "postgres", "target": "db:1", "at_ns": made.at_s(number) * 10**9}
    kept |= {"note": "", "facts": facts, "cost": {"looks": LOOKS} if made.sessions else {}}
    manifest.write(made.folder, {**kept, "views": records, "pack": pack})


def _value(made: Made, view: str, column: Column) -> str:
    """A column as SQL on `s`, the snapshot, and `n`, the row."""
    name = column.name
    if view == "activity":
        at = f"({made.at_s(0)} + 60 * s - n % {LOOKS}) * 1000000::bigint"
        return at if name == "at_us" else SAMPLES.get(name, "null").format(sessions=made.sessions)
    if view == "pg_settings" and name in ("name", "setting"):
        values = ", ".join(literal(one[name == "setting"]) for one in SETTINGS)
        return f"[{values}][n + 1]"
    if column.kind not in SUBTRACTED:
        return VALUES.get(name, "false" if column.type == "BOOLEAN" else "null").format(tables=made.tables)
    step = STEPS.get(name, 0)
    if not step:
        return "0"
    at = "case when n < 2000 then s else s // 20 end" if view == "pg_stat_statements" else "s"
    more = f"5 * greatest(s - {made.count // 2}, 0) * (n % 50 = 3)::integer" if view == "pg_stat_statements" else "0"
    grown = f"{step} * ({at} + {more}) + hash({at}, n, {literal(name)}) % {1000 * step} / 1000.0"
    return f"floor({grown})" if column.type == "BIGINT" else grown
