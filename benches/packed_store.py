"""A long store of made PostgreSQL snapshots, written as packs at once: a month in minutes.

The columns are those of `tests/snapshot/made_store.py`; what a counter holds follows from the number of the
snapshot, with noise that never makes it fall.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import duckdb

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "snapshot"))
from made_store import MadeServer

from dbdyno.evidence.files import write_json
from dbdyno.snapshot import manifest
from dbdyno.snapshot.difference import quoted
from dbdyno.snapshot.pack import GROUP, SUMS
from dbdyno.snapshot.parquet import file_sum, literal
from dbdyno.snapshot.view import Column, View

ROWS = {"pg_stat_statements": 200, "pg_stat_user_tables": 100}
STEPS = {"calls": 50, "rows": 50, "total_exec_time": 5, "idx_scan": 50, "n_tup_ins": 2, "xact_commit": 600}
"""What a counter grows by from one snapshot to the next; the others stay."""
FIXED = ("pg_stat_statements_info", "pg_settings", "statement_texts")


def write(folder: Path, count: int) -> None:
    """A store with `count` snapshots, one a minute, rounded up to whole packs."""
    server = MadeServer(folder)
    server.at_s = int(time.time()) // 3600 * 3600 - 60 * count  # its ages are those of a store that is in use
    for statement in range(ROWS["pg_stat_statements"]):
        server.call(statement, 1, 1.0)
    for table in range(ROWS["pg_stat_user_tables"]):
        server.touch(table)
    views = {view.name: view for view in server.views()}
    with duckdb.connect() as connection:
        for first in range(1, count + 1, GROUP):
            _pack(connection, server, views, first)


def _pack(connection: duckdb.DuckDBPyConnection, server: MadeServer, views: dict[str, View], first: int) -> None:
    name = f"packs/{first:06d}-{first + GROUP - 1:06d}-{first:08x}"
    folder = server.store.folder / name
    folder.mkdir(parents=True)
    for view in views.values():
        shown = ", ".join(f"{_value(view, c)}::{c.type} as {quoted(c.name)}" for c in view.columns)
        last = first if view.name in FIXED else first + GROUP - 1
        keys = ", ".join(quoted(c.name) for c in view.columns if c.kind == "key") or "1"
        connection.execute(
            f"copy (select s::integer as snapshot_, {shown} from range({first}, {last + 1}) a(s),"
            f" range({ROWS.get(view.name, ROWS['pg_stat_statements'] if view.name == 'statement_texts' else 1)}) b(n)"
            f" order by {keys}, 1) to {literal(str(folder / (view.name + '.parquet')))}"
            " (format parquet, compression zstd, parquet_version v2)"
        )
    write_json(folder / SUMS, {path.name: file_sum(path) for path in sorted(folder.glob("*.parquet"))})
    for number in range(first, first + GROUP):
        _manifest(server, views, first, number, name)


def _manifest(server: MadeServer, views: dict[str, View], first: int, number: int, pack: str) -> None:
    server.at_s += server.every_s
    (server.store.folder / f"{number:06d}").mkdir()
    records: dict[str, Any] = {
        view.name: {
            "scope": view.scope,
            "scope_by": view.scope_by,
            "appearance": view.appearance,
            "elapsed_ns": 0,
            "columns": [[c.name, c.kind, c.unit, c.type] for c in view.columns],
            "rows": ROWS.get(view.name, 1),
            "file": f"{pack}/{view.name}.parquet",
            "in": first if view.name in FIXED else number,
        }
        for view in views.values()
    }
    made = {"number": number, "engine": "postgres", "target": "db:1", "at_ns": server.at_s * 10**9, "note": ""}
    made |= {"facts": server.facts(), "cost": {}, "views": records, "pack": pack}
    manifest.write(server.store.folder, made)


def _value(view: View, column: Column) -> str:
    """A column as SQL on `s`, the snapshot, and `n`, the row."""
    step = STEPS.get(column.name, 0)
    if column.kind == "counter" and step:
        grown = f"{step} * s + (hash(s, n, {literal(column.name)}) % {1000 * step}) / 1000.0"
        return f"floor({grown})" if column.unit == "count" else grown
    if column.kind == "counter":
        return "0"
    words = {
        "userid": "10",
        "dbid": "5",
        "datid": "5",
        "queryid": "n",
        "relid": "n",
        "datname": "'app'",
        "schemaname": "'public'",
        "relname": "'t' || n",
        "query": "'select ' || n || ' from t'",
        "fingerprint": "'f' || n",
        "name": "'track_io_timing'",
        "setting": "'off'",
        "dealloc": "0",
    }
    return words.get(column.name, "1" if view.name == "pg_stat_statements_info" else "null")


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]))
