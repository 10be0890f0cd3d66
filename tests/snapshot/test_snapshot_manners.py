"""A snapshot disturbs nobody: read-only, with timeouts, without waits for locks, and without secrets."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from snapshot_help import Lab, section, settle

from dbdyno.base.errors import SnapshotError
from dbdyno.evidence.memory import file_connection
from dbdyno.snapshot.engines.postgres.facts import FactsReader
from dbdyno.snapshot.engines.postgres.texts import without_literals
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.taking.take import open_collector, take


def test_sessions_are_read_only_with_timeouts(lab: Lab):
    with open_collector(lab.dsn, Options()) as collector:
        take(collector, lab.store, engine_name="postgres")
        conn = collector._connections[""]
        shown = {
            name: conn.execute(f"show {name}").fetchone()[0]
            for name in ("default_transaction_read_only", "statement_timeout", "lock_timeout")
        }
        assert shown == {"default_transaction_read_only": "on", "statement_timeout": "5s", "lock_timeout": "500ms"}
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            conn.execute("create table never (id int)")


def test_nothing_is_left_in_the_target(lab: Lab):
    def everything() -> object:
        with contextlib.closing(lab.connect()) as conn:
            return conn.execute(
                "select (select count(*) from pg_class), (select count(*) from pg_proc),"
                " (select max(stats_reset) from pg_stat_database),"
                " (select stats_reset from pg_stat_bgwriter)"
            ).fetchone()

    before = everything()
    lab.take()
    assert everything() == before


def test_a_table_under_a_lock_of_ddl_is_in_the_snapshot_and_blocks_nothing(lab: Lab):
    lab.run("create table altered (id int)", "create index on altered (id)")
    with contextlib.closing(lab.connect()) as holder:
        holder.execute("begin")
        holder.execute("alter table altered add column more int")
        holder.execute("lock table altered in access exclusive mode")
        started = time.monotonic()
        with open_collector(lab.dsn, Options()) as collector:
            made = take(collector, lab.store, engine_name="postgres")
        assert time.monotonic() - started < 60
        holder.execute("rollback")
    assert not [name for name, view in made.views.items() if "timeout" in str(view.get("problem"))]
    last = lab.take()
    (row,) = lab.rows(made, last, "pg_stat_user_tables", "relname = 'altered'")
    assert row["verdict"] == "ok"


def test_a_view_that_is_locked_fails_alone_and_says_why(lab: Lab):
    lab.run("create table seen (id int)")
    with open_collector(lab.dsn, Options(lock_timeout_ms=100)) as collector:
        first = take(collector, lab.store, engine_name="postgres")
        lab.run("insert into seen values (1)")
        settle()
        with contextlib.closing(lab.connect()) as holder:
            holder.execute("begin")
            holder.execute("lock table pg_index in access exclusive mode")
            second = take(collector, lab.store, engine_name="postgres")
            holder.execute("rollback")
    assert "lock timeout" in second.views["pg_index"]["problem"]
    assert "lock timeout" in second.views["pg_stat_user_indexes"]["problem"]
    assert second.views["pg_stat_database"].get("problem") is None
    assert second.views["pg_class"].get("problem") is None
    model = lab.report(first, second)
    (lack,) = section(model, "indexes")["not_measured"]
    assert "lock timeout" in lack["why"]
    assert section(model, "throughput")["tables"]


def test_pg_monitor_is_enough_and_a_plain_role_is_told_what_it_misses(lab: Lab):
    lab.run(
        "set password_encryption to 'scram-sha-256'",  # not the default before version 14
        "create role watcher login password 'w'",
        "grant pg_monitor to watcher",
        "create role nobody_much login password 'n'",
        "create table theirs (id int)",
        "insert into theirs select generate_series(1, 10)",
    )
    try:
        for role, password in (("watcher", "w"), ("nobody_much", "n")):
            given = {**lab.engine.tcp_conninfo(), "user": role, "password": password}
            with open_collector(make_conninfo("", **given), Options(name=role)) as collector:
                first = take(collector, lab.store, engine_name="postgres")
                time.sleep(0.5)
                lab.run("select count(*) from theirs")
                time.sleep(1.2)
                last = take(collector, lab.store, engine_name="postgres")
            problems = {n for n, view in last.views.items() if view.get("problem")}
            assert not problems, role
            model = lab.report(first, last)
            lacks = [lack["what"] for lack in section(model, "sql")["not_measured"]]
            assert ("statements of other roles" in lacks) == (role == "nobody_much")
            texts = str(section(model, "sql")["tables"])
            assert ("count(*) from theirs" in texts) == (role == "watcher")
    finally:
        lab.run("drop role watcher", "drop role nobody_much")


def test_a_text_cut_behind_a_backslash_gives_no_value_away():
    assert without_literals("comment on table t is 'secret\\") == "comment on table t is '?'"


def test_no_secret_and_no_literal_lands_in_the_store(lab: Lab):
    given = {**lab.engine.tcp_conninfo()}
    lab.run(
        "select pg_stat_statements_reset()",
        *["create role spoken password 'sEcReT1'", "drop role spoken"] * 20,
        *["select 'sEcReT2' || 'x'"] * 20,
        *["do $body$ begin perform 'sEcReT3'; end $body$"] * 20,
    )
    with open_collector(make_conninfo("", **given), Options()) as collector:
        take(collector, lab.store, engine_name="postgres")
    texts = _texts(lab.store)
    assert any("create role spoken" in text for text in texts)
    for file in lab.store.folder.rglob("*.json"):
        assert given["password"] not in file.read_text()
    assert not [text for text in texts if "sEcReT" in text]


def test_redact_stores_no_text(lab: Lab):
    lab.run("select 1 as told")
    first = lab.take(redact=True)
    lab.run("select 1 as told")
    last = lab.take(redact=True)
    assert "statement_texts" not in last.views
    lacks = section(lab.report(first, last), "sql")["not_measured"]
    assert "texts" in [lack["what"] for lack in lacks]


def _texts(store: Store) -> list[str]:
    import duckdb

    (last,) = store.snapshots_of(None)
    file = last.file("statement_texts")
    rows = duckdb.sql(f"select query from read_parquet('{file}')").fetchall()
    return [str(text) for (text,) in rows]


def test_a_lock_on_the_catalog_costs_a_moment_and_its_holder_is_named(lab: Lab):
    """A login waits for it and gives up; a session that is open already says who holds it."""
    with contextlib.closing(lab.connect(application_name="migration")) as holder:
        holder.execute("begin")
        with open_collector(lab.dsn, Options(lock_timeout_ms=100)) as collector:
            take(collector, lab.store, engine_name="postgres")
            holder.execute("lock pg_class in access exclusive mode")
            with pytest.raises(SnapshotError, match="a lock on a system catalog") as refused:
                open_collector(lab.dsn, Options())
            assert "pg_lock_status" in (refused.value.next_step or "")
            made = take(collector, lab.store, engine_name="postgres")
            pid = holder.info.backend_pid
            problem = made.views["pg_class"]["problem"]
            assert f"session {pid} of postgres (migration), idle in transaction" in problem
            assert problem.endswith("holds pg_class")
            holder.execute("rollback")
            again = take(collector, lab.store, engine_name="postgres")
    assert again.problem("pg_class") is None


def test_options_of_the_connection_string_are_kept_beside_the_limit_of_a_login(lab: Lab):
    with open_collector(f"{lab.dsn} options='-c work_mem=1234kB'", Options()) as collector:
        made = take(collector, lab.store, engine_name="postgres")
    with lab.between(made, lab.take()) as interval:
        (row,) = interval.query(f"select setting from {interval.ends('pg_settings')[0]} where name = 'work_mem'")
    assert row["setting"] == "1234"


STATEMENTS_MOST = 31
"""Largest number of statements for one snapshot of one database, without savepoints: version 15 needs 28."""


def test_a_snapshot_costs_the_server_so_many_statements_whatever_it_has(lab: Lab):
    """No more with thirty tables and their statements than with none."""
    counted = (
        "select sum(calls)::int from pg_stat_statements where query like '%/* dbdyno */%' and query not like '%calls%'"
    )

    def one(collector: Any) -> int:
        with contextlib.closing(lab.connect()) as conn:
            before = conn.execute(counted).fetchone()[0]
            take(collector, lab.store, engine_name="postgres")
            return int(conn.execute(counted).fetchone()[0] - before)

    with open_collector(lab.dsn, Options()) as collector:
        take(collector, lab.store, engine_name="postgres")
        few = one(collector)
        lab.run(*(f"create table many{at} (id int primary key)" for at in range(30)))
        lab.run(*(f"select id as of_{at} from many{at}" for at in range(30)))
        take(collector, lab.store, engine_name="postgres")  # what is new is asked for once: texts, columns
        assert max(few, one(collector)) <= STATEMENTS_MOST


SAVEPOINTS_MOST = 6
"""Largest number of savepoints of a snapshot after one that could read every view; each costs like a small view."""


def test_a_watch_needs_no_savepoint_for_each_view_until_one_is_refused(lab: Lab):
    counted = "select coalesce(sum(calls), 0)::int from pg_stat_statements where query ilike 'savepoint%'"

    def one() -> tuple[Snapshot, int]:
        before = holder.execute(counted).fetchone()[0]
        made = take(collector, lab.store, engine_name="postgres")
        return made, int(holder.execute(counted).fetchone()[0] - before)

    with (
        contextlib.closing(lab.connect()) as holder,
        open_collector(lab.dsn, Options(lock_timeout_ms=100)) as collector,
    ):
        _, first = one()
        _, second = one()
        assert first > 20 > SAVEPOINTS_MOST >= second
        holder.execute("begin; lock pg_index in access exclusive mode")
        refused = take(collector, lab.store, engine_name="postgres")
        holder.execute("rollback")
        assert refused.problem("pg_index") is not None
        assert refused.problem("pg_stat_database") is None and refused.problem("pg_stat_statements") is None
        (again, third), (_, last) = one(), one()
        assert again.problem("pg_index") is None
        assert third > 20 > SAVEPOINTS_MOST >= last


def test_settings_are_read_again_where_the_server_read_its_files_again(lab: Lab):
    """A watch kept asking for all 350 each time: a tenth of what a snapshot cost the server."""

    def work_mem(one: Snapshot) -> str:
        with file_connection() as files:
            asked = f"select setting from {one.relation('pg_settings')} where name = 'work_mem'"
            return str(files.execute(asked).fetchall()[0][0])

    with open_collector(lab.dsn, Options()) as collector:
        first = take(collector, lab.store, engine_name="postgres")
        again = take(collector, lab.store, engine_name="postgres")
        assert again.views["pg_settings"]["elapsed_ns"] == 0
        assert work_mem(first) == work_mem(again) == "4096"
        try:
            lab.run("alter system set work_mem = '5MB'", "select pg_reload_conf()")
            for _ in range(200):  # the server tells its sessions in its own time
                last = take(collector, lab.store, engine_name="postgres")
                if last.views["pg_settings"]["elapsed_ns"]:
                    break
                time.sleep(0.05)
            assert work_mem(last) == "5120"
        finally:
            lab.run("alter system reset work_mem", "select pg_reload_conf()")


def test_one_fact_that_is_refused_costs_no_other(lab: Lab):
    lab.run("create role few login", "revoke execute on function pg_control_system() from public")
    try:
        with contextlib.closing(lab.connect(user="few")) as conn, conn.transaction():
            asked = FactsReader()
            found, again = asked.read(conn), asked.read(conn)
        assert "identity" not in found
        assert found["role"] == "few"
        assert found["timeline"] == again["timeline"] == 1
        assert found["wal_bytes"] > 0
    finally:
        lab.run("grant execute on function pg_control_system() to public", "drop role few")
