"""Each verdict of a row, provoked on a real server: a difference is never negative, clamped or missing."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from snapshot_help import SETTINGS, Lab, line, never_negative, section

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.store.folder import Snapshot
from dbdyno.snapshot.taking.take import open_collector, take


def word(lab: Lab, first, last, scope: str = "cluster", value: str | None = None) -> str:
    with lab.between(first, last) as interval:
        never_negative(interval)
        return interval.verdict(scope, value).word


def fill(lab: Lab, name: str, rows: int) -> None:
    lab.run(f"create table {name} (id int)", f"insert into {name} select generate_series(1, {rows})")


@dataclass
class Changed:
    """Snapshots of one server with something that happened between each two of them, and the reports on these."""

    lab: Lab
    taken: list[Snapshot]
    models: list[JsonObject]

    def word(self, at: int, scope: str = "cluster") -> str:
        """Return the verdict of a scope in an interval."""
        return word(self.lab, *self.taken[at : at + 2], scope)

    def rows(self, at: int, view: str, where: str = "true") -> list[Any]:
        """Return rows of a view's difference in an interval."""
        return self.lab.rows(*self.taken[at : at + 2], view, where)


TABLES_AND_SHARED, RESET, RESET_AGAIN = range(3)
"""Intervals of `Changed`: tables are changed and shared counters reset, and twice those of the database are reset."""


@pytest.fixture(scope="module")
def changed(engine: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Changed:
    """Take four snapshots around changes that do not touch each other."""
    with Lab(engine, tmp_path_factory.mktemp("changed") / "snaps") as lab:
        for name in ("old_name", "cut", "counted"):
            fill(lab, name, 100)
        lab.run(*["select 'before'"] * 5)
        taken = [lab.take()]
        lab.run("select pg_stat_statements_reset()", "select pg_stat_reset_shared('bgwriter')", "select 'after', 1")
        lab.run("alter table old_name rename to new_name", "insert into new_name values (1), (2)")
        lab.run("truncate cut", "insert into cut values (1), (2), (3)")
        taken.append(lab.take())
        lab.run("select pg_stat_reset()")
        taken.append(lab.take())
        lab.run("select pg_stat_reset()")
        with contextlib.closing(lab.connect()) as conn:
            for _ in range(300):
                conn.execute("select count(*) from pg_class")
        taken.append(lab.take())
        models = [lab.report(*ends) for ends in pairwise(taken)]
        lab.run("drop table new_name, cut, counted")
        return Changed(lab, taken, models)


def test_nothing_happened_is_ok(lab: Lab):
    first, last = lab.take(), lab.take()
    assert word(lab, first, last) == "ok"
    assert lab.report(first, last)["warnings"] == []


@pytest.mark.soak
def test_a_table_dropped_and_created_again_is_two_objects(lab: Lab):
    fill(lab, "twice", 100)
    first = lab.take()
    lab.run("drop table twice")
    fill(lab, "twice", 7)
    last = lab.take()
    rows = {r["life"]: r for r in lab.rows(first, last, "pg_stat_user_tables", "relname = 'twice'")}
    assert rows["new"]["n_tup_ins"] == 7
    assert rows["new"]["verdict"] == "ok"
    assert rows["gone"]["n_tup_ins"] is None
    assert rows["gone"]["verdict"] == "partial"
    changes = section(lab.report(first, last), "changes")["tables"][0]["rows"]
    assert [(r["name"], r["change"]) for r in changes if r["kind"] == "table"] == [
        ("public.twice", "created"),
        ("public.twice", "dropped"),
    ] or {r["change"] for r in changes} == {"created", "dropped"}


def test_a_renamed_table_is_the_same_object(changed: Changed):
    (row,) = changed.rows(TABLES_AND_SHARED, "pg_stat_user_tables", "relname like '%name'")
    assert (row["relname"], row["n_tup_ins"], row["verdict"]) == ("new_name", 2, "ok")
    changes = line(changed.models[TABLES_AND_SHARED], "changes", "table")
    assert changes["change"] == "renamed from public.old_name"


def test_a_truncated_table_keeps_its_counters(changed: Changed):
    (row,) = changed.rows(TABLES_AND_SHARED, "pg_stat_user_tables", "relname = 'cut'")
    assert (row["n_tup_ins"], row["verdict"]) == (3, "ok")


@pytest.mark.soak
def test_a_dropped_index_makes_the_sum_over_indexes_unknown_and_nothing_else(lab: Lab):
    lab.run(
        "create table two (a int, b int)",
        "create index on two (a)",
        "create index on two (b)",
        "insert into two select g, g from generate_series(1, 1000) g",
        "analyze two",
        "set enable_seqscan = off; select count(*) from two where a = 1",
    )
    first = lab.take()
    lab.run(
        "drop index two_a_idx",
        "insert into two values (1, 1)",
        *["set enable_seqscan = off; select * from two where b = 1"] * 3,
    )
    last = lab.take()
    (row,) = lab.rows(first, last, "pg_stat_user_tables", "relname = 'two'")
    assert (row["n_tup_ins"], row["verdict"], row["idx_scan"]) == (1, "ok", None)
    (kept,) = lab.rows(first, last, "pg_stat_user_indexes", "indexrelname = 'two_b_idx'")
    assert (kept["idx_scan"], kept["verdict"]) == (3, "ok")


@pytest.mark.soak
def test_an_index_rebuilt_concurrently_is_partial_not_new(lab: Lab):
    lab.run(
        "create table re (a int)",
        "create index on re (a)",
        "insert into re select generate_series(1, 1000)",
        "analyze re",
        *["set enable_seqscan = off; select count(*) from re where a = 1"] * 5,
    )
    first = lab.take()
    lab.run("reindex index concurrently re_a_idx")
    last = lab.take()
    rows = lab.rows(first, last, "pg_stat_user_indexes", "indexrelname = 're_a_idx'")
    assert {r["verdict"] for r in rows} == {"partial"}
    assert all(r["idx_scan"] is None for r in rows)


def test_pg_stat_reset(changed: Changed):
    model = changed.models[RESET]
    assert line(model, "throughput", "postgres")["verdict"] == "reset"
    assert line(model, "throughput", "postgres")["tps"] is None
    (row,) = changed.rows(RESET, "pg_stat_user_tables", "relname = 'counted'")
    assert (row["verdict"], row["n_tup_ins"]) == ("reset", None)
    assert "pg_stat_reset() in postgres at 20" in row["why"]
    assert any("pg_stat_reset()" in warning["text"] for warning in model["warnings"])
    profile = section(model, "profile")
    total = {row["what"]: row["total"] for row in profile["tables"][0]["rows"]}
    assert total["transactions committed"] is None, "0 was no answer: nobody worked in the other databases"
    assert profile["notes"][0].startswith("postgres: the difference is not known")


def test_pg_stat_reset_is_seen_although_the_counters_are_higher_than_before(changed: Changed):
    assert line(changed.models[RESET_AGAIN], "throughput", "postgres")["verdict"] == "reset"


def test_the_reset_of_one_table_condemns_that_table_only(lab: Lab):
    fill(lab, "one", 100)
    fill(lab, "other", 100)
    first = lab.take()
    lab.run("select pg_stat_reset_single_table_counters('one'::regclass)", "insert into other values (1)")
    fill(lab, "third", 1)
    fill(lab, "quiet", 5)
    last = lab.take()
    rows = {r["relname"]: r for r in lab.rows(first, last, "pg_stat_user_tables")}
    assert (rows["one"]["verdict"], rows["one"]["n_tup_ins"]) == ("reset", None)
    # nothing proves here that `other` was kept but the database's own counters
    assert rows["other"]["verdict"] in ("ok", "reset")
    assert "pg_stat_reset()" not in "".join(row["why"] or "" for row in rows.values()), "of one, or of all: not known"
    first = last
    lab.run("select pg_stat_reset_single_table_counters('other'::regclass)")
    last = lab.take()
    rows = {r["relname"]: r for r in lab.rows(first, last, "pg_stat_user_tables")}
    assert rows["other"]["verdict"] == "reset"
    assert (rows["quiet"]["verdict"], rows["quiet"]["n_tup_ins"]) == ("ok", 0)
    assert line(lab.report(first, last), "throughput", "postgres")["verdict"] == "ok"


def test_the_reset_of_a_shared_view(changed: Changed):
    (row,) = changed.rows(TABLES_AND_SHARED, "pg_stat_bgwriter")
    assert (row["verdict"], row["buffers_alloc"]) == ("reset", None)
    (archiver,) = changed.rows(TABLES_AND_SHARED, "pg_stat_archiver")
    assert archiver["verdict"] == "ok"
    assert changed.word(TABLES_AND_SHARED) == "ok"


def test_the_reset_of_the_statements(changed: Changed, major: int):
    expected = "reset" if major >= 14 else "evicted"
    assert changed.word(TABLES_AND_SHARED, "statements") == expected
    sql = section(changed.models[TABLES_AND_SHARED], "sql")
    assert any(expected in note for note in sql["notes"])
    after = next(row for row in sql["tables"][0]["rows"] if (row["text"] or "").startswith("select $1, $2"))
    assert (after["calls"], after["verdict"]) == (1, "evicted") and after["why"].startswith("at least: ")
    assert not any(row["calls"] == 6 for row in sql["tables"][0]["rows"]), "nothing of before the reset"


def test_evicted_statements_are_told(lab: Lab, tmp_path):
    settings = {**SETTINGS, "pg_stat_statements.max": 100}
    with EmbeddedPostgres(settings=settings) as engine, Lab(engine, tmp_path / "s") as small:
        small.run(*["select 1 as often"] * 50)
        first = small.take()
        columns = [", ".join(str(i) for i in range(n + 1)) for n in range(300)]
        small.run(*(f"select {text}" for text in columns))
        last = small.take()
        assert word(small, first, last, "statements") == "evicted"
        rows = small.rows(first, last, "pg_stat_statements")
        assert {"evicted"} <= {r["verdict"] for r in rows}
        assert all((r["calls"] is None) == (r["life"] == "gone") for r in rows if r["verdict"] == "evicted")
        assert all(r["why"].startswith("at least") for r in rows if r["verdict"] == "evicted" and r["life"] == "new")
        tables = section(small.report(first, last), "sql")["tables"]
        (lost,) = [t for t in tables if t["title"] == "Difference not known"]
        gone = {str(r["queryid"]) for r in rows if r["life"] == "gone"}
        assert {(r["verdict"], r["name"] in gone) for r in lost["rows"]} == {("evicted", True)}


def test_a_clean_restart_keeps_the_counters(own_lab: Lab):
    fill(own_lab, "kept", 100)
    first = own_lab.take()
    own_lab.engine.restart()
    own_lab.run("insert into kept values (1), (2)")
    last = own_lab.take()
    assert word(own_lab, first, last) == "restart"
    (row,) = own_lab.rows(first, last, "pg_stat_user_tables", "relname = 'kept'")
    assert (row["n_tup_ins"], row["verdict"]) == (2, "ok")
    assert own_lab.report(first, last)["verdict"]["word"] == "restart"


def test_the_sigkill_of_a_backend_is_a_crash_although_the_server_kept_running(own_lab: Lab):
    fill(own_lab, "lost", 100)
    first = own_lab.take()
    victim = own_lab.connect()
    os.kill(victim.info.backend_pid, signal.SIGKILL)
    _until_up(own_lab)
    own_lab.run("insert into lost select generate_series(1, 500)")  # more than before
    last = own_lab.take()
    with contextlib.suppress(psycopg.Error):
        victim.close()
    assert first.facts["started_us"] == last.facts["started_us"]
    assert word(own_lab, first, last) == "crash"
    (row,) = own_lab.rows(first, last, "pg_stat_user_tables", "relname = 'lost'")
    assert (row["verdict"], row["n_tup_ins"]) == ("crash", None)
    (row,) = own_lab.rows(first, last, "pg_stat_bgwriter")
    assert (row["verdict"], row["buffers_alloc"]) == ("crash", None)
    assert "a server process was killed" in own_lab.report(first, last)["verdict"]["why"]


def test_a_server_that_was_stopped_at_once_is_a_crash(own_lab: Lab):
    fill(own_lab, "lost", 100)
    first = own_lab.take()
    assert own_lab.engine.pid is not None
    os.kill(own_lab.engine.pid, signal.SIGQUIT)
    _until_down(own_lab)
    own_lab.engine.start()
    last = own_lab.take()
    assert word(own_lab, first, last) == "crash"
    why = own_lab.report(first, last)["verdict"]["why"]
    assert "without a clean shutdown" in why


@pytest.mark.usefixtures("made_anew")
def test_another_cluster_under_the_same_name_is_a_failover(lab: Lab):
    with EmbeddedPostgres(settings=SETTINGS) as second:
        ends = []
        for engine in (lab.engine, second):
            dsn = make_conninfo("", **engine.conninfo())
            with open_collector(dsn, Options(name="db")) as collector:
                ends.append(take(collector, lab.store, engine_name="postgres"))
        assert word(lab, *ends) == "failover"
        model = lab.report(*ends)
        assert line(model, "throughput", "postgres")["tps"] is None
        assert "another cluster answers" in model["verdict"]["why"]


def test_a_database_that_one_end_did_not_read_is_partial(lab: Lab):
    lab.run("create database second")
    try:
        lab.run("create table there (id int)", database="second")
        first = lab.take()
        last = lab.take(databases=("*",))
        (row,) = lab.rows(first, last, "pg_stat_user_tables", "relname = 'there'")
        assert (row["verdict"], row["n_tup_ins"]) == ("partial", None)
        again = lab.take(databases=("*",))
        (row,) = lab.rows(last, again, "pg_stat_user_tables", "relname = 'there'")
        assert (row["verdict"], row["n_tup_ins"]) == ("ok", 0)
    finally:
        lab.run("drop database second")


def _until_up(lab: Lab) -> None:
    for _ in range(100):
        time.sleep(0.1)
        with contextlib.suppress(psycopg.Error):
            lab.connect().close()
            return
    raise AssertionError("the server did not come back")


def _until_down(lab: Lab) -> None:
    for _ in range(100):
        if not lab.engine.running:
            return
        time.sleep(0.1)
    raise AssertionError("the server did not end")
