"""Compares the report of pg_profile with that of dbdyno, figure by figure, for one interval of a load with known
counts.

    python benches/pg_profile_parity.py --pg-bin /path/to/server/bin

The server must have the extensions dblink, pg_stat_statements and pg_profile (4.11) in its `share/extension`; they are
not brought along. Prints a line per figure with both values; exit 1 where one differs by more than its tolerance.

Both read while the other's own statements run, so that transactions and statements of the two differ by what taking a
sample itself does: compared is what the load did to its own database and its own objects.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg
from figures import figure, lacks, parse
from psycopg.conninfo import make_conninfo

from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.bench.postgres.binaries import Binaries, version_of
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.report import report
from dbdyno.snapshot.store.folder import Store
from dbdyno.snapshot.taking.take import open_collector, take

SETTINGS: dict[str, Any] = {
    "shared_preload_libraries": "pg_stat_statements",
    "autovacuum": False,
    "track_functions": "all",
    "track_io_timing": True,
}
LOAD = (
    "insert into orders select g, g % 100, repeat('y', 300) from generate_series(20001, 40000) g",
    *["select count(*) from orders where customer = 7"] * 9,
    *["select tax(1)"] * 13,
    "update orders set note = 'z' where id <= 500",
    "delete from orders where id <= 40",
    "vacuum analyze orders",
)
PREPARE = (
    "create table orders (id int primary key, customer int, note text)",
    "insert into orders select g, g % 100, repeat('x', 100) from generate_series(1, 20000) g",
    "create index orders_customer on orders (customer)",
    "create function tax(a int) returns int language plpgsql as $$ begin return a + 1; end $$",
    "vacuum analyze orders",
)
Figures = dict[str, tuple[float, float]]
"""By name: pg_profile's value, ours."""


def main() -> int:
    """Runs the load, prints the figures."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--pg-bin", type=Path)
    named = parse(given).pg_bin
    if named is None:
        lacks("name a server that has pg_profile: --pg-bin FOLDER")
    bindir = named.resolve()
    binaries = Binaries(bindir, version_of(bindir) or "", "--pg-bin")
    with tempfile.TemporaryDirectory() as folder, EmbeddedPostgres(settings=SETTINGS, binaries=binaries) as server:
        figures = both(server, Store(Path(folder) / "snaps"))
    off = 0
    for name, (theirs, ours) in figures.items():
        differs = abs(theirs - ours) > 0.02 * max(abs(theirs), abs(ours))
        off += differs
        print(f"{name:<44} {theirs:>16,.6g} {ours:>16,.6g}{'   differs' if differs else ''}")
    figure("figures that differ from pg_profile's by more than 2 %", off, f"of {len(figures)}", aim="0")
    return 1 if off else 0


def both(server: EmbeddedPostgres, store: Store) -> Figures:
    """The figures of the two over one interval."""
    base = make_conninfo("", **server.conninfo())
    load = make_conninfo(base, dbname="load")
    run(base, "create database load", "create extension pg_stat_statements", "create extension dblink")
    run(base, "create schema profile", "create extension pg_profile schema profile")
    run(base, "alter role postgres set search_path = public, profile")
    run(load, *PREPARE)
    ends = []
    for _ in range(2):
        time.sleep(1.5)
        if not ends:
            run(base, "select profile.take_sample()")  # it resets pg_stat_statements: never between our two
        with open_collector(base, Options(databases=("*",))) as collector:
            ends.append(take(collector, store, engine_name="postgres"))
        if len(ends) == 1:
            run(load, *LOAD)
    run(base, "select profile.take_sample()")
    with contextlib.closing(psycopg.connect(base, autocommit=True)) as connection:
        html = connection.execute("select profile.get_report(1, 2)").fetchone()
    assert html is not None
    with Interval(store, *ends) as interval:
        ours = report(interval)
    return figures_of(theirs_of(html[0]), ours)


def run(dsn: str, *statements: str) -> None:
    """Statements in a session of their own."""
    with contextlib.closing(psycopg.connect(dsn, autocommit=True, prepare_threshold=None)) as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[arg-type]


def theirs_of(html: str) -> dict[str, list[TableRow]]:
    """The datasets in pg_profile's page."""
    decoder = json.JSONDecoder()
    at = html.index('"datasets"')
    while at > 0:
        at = html.rindex("{", 0, at)
        with contextlib.suppress(json.JSONDecodeError):
            found, _ = decoder.raw_decode(html[at:])
            if isinstance(found, dict) and "datasets" in found:
                datasets: dict[str, list[TableRow]] = found["datasets"]
                return datasets
    raise SystemExit("pg_profile's report holds no datasets")


def row_of(model: JsonObject, section: str, title: str, **wanted: Any) -> JsonObject:
    """A row of a table of ours."""
    tables = next(one["tables"] for one in model["sections"] if one["name"] == section)
    rows = next(one["rows"] for one in tables if one["title"] == title)
    return next(row for row in rows if all(row[name] == value for name, value in wanted.items()))


def figures_of(theirs: dict[str, list[TableRow]], model: JsonObject) -> Figures:
    """What both say of the database that had the load, of its table, indexes, function and statements."""
    seconds = float(model["facts"]["seconds"])
    found: Figures = {}

    def add(what: str, their: JsonObject, our: JsonObject, names: dict[str, str], factor: float = 1) -> None:
        for name, own in names.items():
            found[f"{what}: {name}"] = (float(their[name] or 0), float(our[own] or 0) * factor)

    database = one_of(theirs, "dbstat", dbname="load")
    rates = {"tup_inserted": "ins_ps", "tup_updated": "upd_ps", "tup_deleted": "del_ps"}
    add("database", database, row_of(model, "throughput", "", database="load"), rates, seconds)
    table, name = one_of(theirs, "top_tables", relname="orders"), "load: orders"
    own = row_of(model, "tables", "By rows changed", table=name)
    changed = {"n_tup_ins": "inserted", "n_tup_upd": "updated", "n_tup_del": "deleted", "n_tup_newpage_upd": "new_page"}
    add("table", table, own, {**changed, "idx_scan": "idx_scans", "idx_tup_fetch": "idx_rows"})
    add(
        "vacuum",
        table,
        row_of(model, "vacuum", "", table=name),
        {"vacuum_count": "vacuums", "analyze_count": "analyzes"},
    )
    for index in ("orders_pkey", "orders_customer"):
        own = row_of(model, "indexes", "Most scanned", index=index)
        own["fetched"] = own["blocks_read"] + own["blocks_hit"]
        pages = one_of(theirs, "top_io_indexes", indexrelname=index)
        add(index, pages, own, {"idx_scan": "scans", "idx_blks_fetch": "fetched", "idx_blks_read": "blocks_read"})
    function = one_of(theirs, "top_functions", funcname="tax")
    add("function", function, row_of(model, "functions", "By calls", function="load: tax"), {"calls": "calls"})
    for statement in model_statements(model):
        their = next(one for one in theirs["top_statements"] if str(one["queryid"]) == statement["statement"])
        same = {"calls": "calls", "rows": "rows", "shared_blks_fetched": "blocks", "shared_blks_read": "reads"}
        more = {"shared_blks_dirtied": "dirtied", "wal_bytes": "wal"}
        add(" ".join(statement["text"].split()[:3]), their, statement, {**same, **more})
    return found


def one_of(theirs: dict[str, list[TableRow]], name: str, **wanted: Any) -> JsonObject:
    """A row of pg_profile's."""
    return next(row for row in theirs[name] if all(row.get(key) == value for key, value in wanted.items()))


def model_statements(model: JsonObject) -> list[TableRow]:
    """The statements of the load, as Top SQL has them."""
    tables = next(one["tables"] for one in model["sections"] if one["name"] == "sql")
    rows = next(one["rows"] for one in tables if one["title"] == "By time")
    words = ("insert into orders", "select count(*) from orders", "update orders", "delete from orders")
    return [row for row in rows if (row["text"] or "").startswith(words)]


if __name__ == "__main__":
    sys.exit(main())
