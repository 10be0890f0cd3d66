"""Reports on known loads show exactly their counts."""

from __future__ import annotations

import contextlib
import re
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from snapshot_help import Lab, line, never_negative, section

from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.store.folder import Snapshot
from dbdyno.snapshot.taking.take import open_collector, take
from together import together

TABLE = "create table if not exists known (id int primary key, text text)"


@pytest.fixture
def known(lab: Lab):
    """Create a table of 1,000 rows, which is dropped at the end."""
    lab.run(
        "drop table if exists known",
        TABLE,
        "insert into known select g, 'x' from generate_series(1, 1000) g",
        "vacuum analyze known",
    )
    yield lab
    lab.run("drop table known")


@dataclass
class Loaded:
    """Snapshots before and after loads on a table each, with what the loads saw themselves, and the report."""

    lab: Lab
    ends: tuple[Snapshot, Snapshot]
    model: JsonObject
    deadlocks: int
    pages: int
    log: str

    def row(self, view: str, where: str = "true") -> Any:
        """Return the only row of a view's difference that meets a condition."""
        (row,) = self.lab.rows(*self.ends, view, where)
        return row


@pytest.fixture(scope="module")
def loaded(engine: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    """Take two snapshots around loads that are counted apart from each other."""
    with Lab(engine, tmp_path_factory.mktemp("loaded") / "snaps") as lab:
        for name in ("changed", "indexed", "scanned", "fought"):
            lab.run(
                f"create table {name} (id int primary key, text text)",
                f"insert into {name} select g, 'x' from generate_series(1, 1000) g",
                f"vacuum analyze {name}",
            )
        first = lab.take()
        change_rows(lab)
        scan(lab)
        deadlocks = fight(lab)
        lab.run("checkpoint")
        ends = first, lab.take()
        log = lab.engine.log_file.read_text()
        with contextlib.closing(lab.connect()) as conn:
            pages = conn.execute("select pg_relation_size('scanned') / 8192").fetchone()[0]
        yield Loaded(lab, ends, lab.report(*ends), deadlocks, pages, log)
        lab.run("drop table if exists changed, indexed, scanned, fought")


def change_rows(lab: Lab) -> None:
    lab.run(
        *(f"insert into changed values ({2000 + i}, 'n')" for i in range(37)),
        "update changed set text = 'y' where id <= 11",
        "delete from changed where id <= 5",
    )


def scan(lab: Lab) -> None:
    """Scan an index 29 times and a table three times, and sort in temporary files."""
    with contextlib.closing(lab.connect()) as conn:
        conn.execute("set enable_seqscan = off")
        conn.execute("set enable_bitmapscan = off")
        for i in range(29):
            conn.execute("select text from indexed where id = %s", [i + 100])
    with contextlib.closing(lab.connect()) as conn:
        conn.execute("set max_parallel_workers_per_gather = 0")
        for _ in range(3):
            conn.execute("select count(text) from scanned")
        conn.execute("set work_mem = '64kB'")
        conn.execute("select g, repeat('x', 90) from generate_series(1, 20000) g order by 2, 1 desc")


def fight(lab: Lab) -> int:
    """Let two sessions wait for each other; return how many were told of a deadlock."""
    barrier = threading.Barrier(2)
    found = []

    def update(one: int, other: int) -> None:
        with contextlib.closing(lab.connect()) as conn:
            conn.execute("set deadlock_timeout = '100ms'")
            conn.execute("begin")
            conn.execute("update fought set text = 'd' where id = %s", [one])
            barrier.wait()
            try:
                conn.execute("update fought set text = 'd' where id = %s", [other])
                conn.execute("commit")
            except psycopg.errors.DeadlockDetected:
                found.append(1)

    with together(partial(update, 200, 201), partial(update, 201, 200)):
        pass
    return len(found)


def test_rows_inserted_updated_and_deleted(loaded: Loaded):
    row = loaded.row("pg_stat_user_tables", "relname = 'changed'")
    assert (row["n_tup_ins"], row["n_tup_upd"], row["n_tup_del"]) == (37, 11, 5)
    assert row["verdict"] == "ok"


def test_commits_and_rollbacks_without_our_own(known: Lab, major: int):
    first = known.take()
    with contextlib.closing(known.connect()) as conn:
        for _ in range(20):
            conn.execute("select 1")
        for _ in range(13):
            conn.execute("begin")
            conn.execute("select 1")
            conn.execute("rollback")
    last = known.take()
    row = line(known.report(first, last), "throughput", "postgres")
    assert row["rollbacks"] == 13
    own_session = 1  # the beginning of a session counts as a transaction
    assert row["commits"] == 20 + own_session or major < 15
    assert row["tps"] == pytest.approx(row["commits"] / known.between(first, last).seconds)


def test_index_scans(loaded: Loaded):
    row = loaded.row("pg_stat_user_indexes", "relname = 'indexed'")
    assert (row["idx_scan"], row["idx_tup_fetch"]) == (29, 29)
    table = loaded.row("pg_stat_user_tables", "relname = 'indexed'")
    assert (table["idx_scan"], table["seq_scan"]) == (29, 0)


def test_hits_and_reads_are_the_blocks_that_a_scan_touched(loaded: Loaded):
    row = loaded.row("pg_statio_user_tables", "relname = 'scanned'")
    assert row["heap_blks_hit"] + row["heap_blks_read"] == 3 * loaded.pages
    (statement,) = [r for r in _statements(loaded.model) if "count(text)" in (r["text"] or "")]
    assert statement["hits"] + statement["reads"] == 3 * loaded.pages
    assert (statement["calls"], statement["rows"]) == (3, 3)


def _statements(model: JsonObject) -> list[TableRow]:
    tables = section(model, "sql")["tables"]
    return next(t for t in tables if t["title"] == "By calls")["rows"]


def test_a_temporary_file_of_known_size(loaded: Loaded):
    sizes = [int(n) for n in re.findall(r"temporary file: path \S+, size (\d+)", loaded.log)]
    row = line(loaded.model, "throughput", "postgres")
    assert row["temp_files"] > 0
    assert row["temp_bytes"] == sum(sizes[-row["temp_files"] :])


def test_one_checkpoint(loaded: Loaded, major: int):
    row = loaded.row("pg_stat_checkpointer" if major >= 17 else "pg_stat_bgwriter")
    assert row["num_requested" if major >= 17 else "checkpoints_req"] == 1


def test_one_deadlock(loaded: Loaded):
    row = line(loaded.model, "locks", "postgres")
    assert row["deadlocks"] == loaded.deadlocks == 1


@pytest.mark.soak
def test_variance_of_the_interval_is_that_of_its_own_calls(known: Lab):
    known.run("select pg_sleep(0.2)")
    first = known.take()
    with contextlib.closing(known.connect()) as conn:
        for _ in range(5):
            conn.execute("select pg_sleep(0.01)")
    last = known.take()
    model = known.report(first, last)
    tables = section(model, "sql")["tables"]
    (row,) = [r for t in tables if t["title"] == "By time" for r in t["rows"] if "pg_sleep" in (r["text"] or "")]
    assert row["calls"] == 5
    assert 10e6 < row["mean"] < 60e6  # the one of 200 ms before is not in it
    assert row["sd"] < 60e6
    assert row["begins"] == "select pg_sleep($1)"  # to know it by, without looking it up below


def test_no_number_is_negative(loaded: Loaded):
    with loaded.lab.between(*loaded.ends) as interval:
        assert never_negative(interval) > 500


@pytest.mark.soak
def test_our_own_statements_are_not_in_top_sql(known: Lab):
    first = known.take()
    known.run("select count(*) from known")
    last = known.take()
    sql = section(known.report(first, last), "sql")
    texts = [r["text"] or "" for t in sql["tables"] if t["title"] == "Texts" for r in t["rows"]]
    assert any("count(*) from known" in text for text in texts)
    ours = ("dbdyno", "_pg3_", "pg_control", "pg_has_role", "set_config", "stats_fetch", "pg_class")
    assert not [text for text in texts if any(word in text for word in ours)]
    assert any("dbdyno's own are left out" in note for note in sql["notes"])


def test_reading_texts_is_part_of_the_cost(known: Lab):
    """It makes the server load the texts of all statements; it was told as taking no time."""
    known.run("select count(*) + 1 as one_more from known")
    assert known.take().views["statement_texts"]["elapsed_ns"] > 0


@pytest.mark.soak
def test_many_statements_of_ours_leave_room_for_the_texts_of_others(known: Lab):
    """A snapshot's own statements are the longest of a quiet server."""
    first = known.take()
    known.run(*("select 1 as quick, 2, 3" + ", 4" * more for more in range(3)))
    last = known.take()
    tables = section(known.report(first, last), "sql")["tables"]
    texts = [r["text"] or "" for t in tables if t["title"] == "Texts" for r in t["rows"]]
    assert sum("as quick" in text for text in texts) == 3


def test_the_report_counts_the_transactions_that_pgbench_counts(known: Lab, tmp_path):
    pgbench = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin/pgbench"))), None)
    if pgbench is None:
        pytest.skip("no pgbench here: make setup-test")
    given = known.engine.conninfo()
    where = ["-h", given["host"], "-p", given["port"], "-U", given["user"], given["dbname"]]
    subprocess.run([pgbench, "-i", "-q", *where], check=True, capture_output=True)
    first = known.take()
    done = subprocess.run([pgbench, "-n", "-c", "2", "-t", "150", *where], check=True, capture_output=True, text=True)
    last = known.take()
    counted = int(re.search(r"actually processed: (\d+)/", done.stdout)[1])
    (history,) = known.rows(first, last, "pg_stat_user_tables", "relname = 'pgbench_history'")
    assert history["n_tup_ins"] == counted == 300
    calls = {r["text"]: r["calls"] for r in _statements(known.report(first, last))}
    # From version 16 END and COMMIT are one statement, and our own session commits, too.
    ends = sum(calls[text] for text in calls if text and text.lower() in ("end", "commit"))
    own = 3
    assert counted <= ends <= counted + own
    row = line(known.report(first, last), "throughput", "postgres")
    beginnings = 6  # of pgbench's sessions, and its look at the tables' partitions
    assert counted <= row["commits"] <= counted + beginnings
    seconds = known.between(first, last).seconds
    assert row["tps"] * seconds == pytest.approx(counted, abs=beginnings)


def test_all_databases_names_what_cannot_be_read(lab: Lab):
    lab.run("create database shut", "update pg_database set datallowconn = false where datname = 'shut'")
    try:
        made = lab.take(databases=("*",))
    finally:
        lab.run("update pg_database set datallowconn = true where datname = 'shut'", "drop database shut")
    assert made.facts["problems"] == [{"view": "objects", "database": "shut", "problem": "it allows no connections"}]
    assert "postgres" in made.facts["databases"]


@pytest.mark.soak
def test_statements_are_found_in_whichever_database_has_the_extension(lab: Lab):
    lab.run("create database without")
    try:
        with open_collector(make_conninfo(lab.dsn, dbname="without"), Options(databases=("*",))) as collector:
            made = take(collector, lab.store, engine_name="postgres")
        with open_collector(make_conninfo(lab.dsn, dbname="without"), Options()) as collector:
            alone = take(collector, lab.store, engine_name="postgres")
    finally:
        lab.run("drop database without")
    assert made.views["pg_stat_statements"]["rows"] > 0 and made.views["statement_texts"]["rows"] > 0
    assert "not in the database without" in alone.views["pg_stat_statements"]["problem"]
