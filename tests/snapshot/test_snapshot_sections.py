"""Sections of a PostgreSQL report besides Top SQL: functions, sizes, session ends, sums, settings, replication."""

from __future__ import annotations

import contextlib
import math
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from made_store import MadeServer
from psycopg.conninfo import make_conninfo
from snapshot_help import SETTINGS, Lab, line, section

from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.shown_settings import SECRET_NAMES, SECRET_WORDS
from dbdyno.judge.interval_report import judged_report
from dbdyno.snapshot.engines.postgres.queries import notes_on_statements
from dbdyno.snapshot.engines.postgres.sizes_cache import SizesCache
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.store.folder import Snapshot
from standby import Standby, open_to_standbys

FUNCTIONS = (
    "create function tax(a int) returns int language plpgsql as $$ begin return a + 1; end $$",
    "create function stamp() returns trigger language plpgsql as $$ begin new.note := 's'; return new; end $$",
    "create table orders (id int primary key, note text)",
    "create trigger stamped before insert on orders for each row execute function stamp()",
)
SETTINGS_SET = {
    "work_mem": "5MB",
    "archive_command": "cp Geheim1",
    "restore_command": "scp Geheim1",
}


def table(model: JsonObject, name: str, title: str) -> list[TableRow]:
    """Return the rows of a table in a section; empty if it is not shown."""
    return next((one["rows"] for one in section(model, name)["tables"] if one["title"] == title), [])


def lacks(model: JsonObject, name: str) -> list[str]:
    return [one["why"] for one in section(model, name)["not_measured"]]


@dataclass
class Busy:
    """A report on one load, and the values that the server itself reported."""

    lab: Lab
    last: Snapshot
    model: JsonObject
    sizes: tuple[int, int, int]


@pytest.fixture(scope="module")
def busy(engine: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Busy]:
    """Take two snapshots of all databases, with a load that uses every feature between them."""
    with Lab(engine, tmp_path_factory.mktemp("sections") / "snaps", databases=("*",)) as lab:
        lab.run(*FUNCTIONS, "create table grown (t text)", "create index grown_idx on grown (t)")
        lab.run("create table doc (body text)", "alter table doc alter body set storage external")
        lab.run("create database second", "create role clerk login")
        try:
            first = lab.take()
            _load(lab)
            last = lab.take()
            with contextlib.closing(lab.connect()) as conn:
                sizes = conn.execute(
                    "select pg_database_size('postgres'), pg_relation_size('grown'), pg_relation_size('grown_idx')"
                ).fetchone()
            yield Busy(lab, last, lab.report(first, last), sizes)
        finally:
            lab.run(*(f"alter system reset {name}" for name in SETTINGS_SET), "select pg_reload_conf()")
            lab.run("drop database second", "drop role clerk", "drop schema public cascade", "create schema public")
            lab.run("grant usage on schema public to public")


def _load(lab: Lab) -> None:
    lab.run("set track_functions = 'all'", *["select tax(1)"] * 7, "insert into orders select generate_series(1, 50)")
    lab.run("insert into grown select repeat('x', 500) || g from generate_series(1, 2000) g", "vacuum analyze grown")
    lab.run(
        "create table came (id int)", "create extension pg_buffercache", *["select 1 as one"] * 5, database="second"
    )
    lab.run(
        "insert into doc select repeat('d', 5000) from generate_series(1, 20)",
        "select sum(length(body || '')) from doc",
    )
    lab.run("create temp table kept as select * from grown", "select count(*) from kept")
    lab.run("alter table grown set (autovacuum_enabled = off)")
    with contextlib.closing(lab.connect(user="clerk")) as conn:
        for _ in range(3):
            conn.execute("select 2 as two, 3")
    with pytest.raises(psycopg.errors.AdminShutdown):
        lab.run("select pg_terminate_backend(pg_backend_pid())")
    with contextlib.closing(lab.connect()) as lost, socket.socket(fileno=os.dup(lost.fileno())) as line_to:
        line_to.shutdown(socket.SHUT_RDWR)  # its client goes without a word
    for name, value in SETTINGS_SET.items():
        lab.run(f"alter system set {name} = '{value}'")
    lab.run("select pg_reload_conf()")


def test_functions_are_counted_and_those_of_triggers_apart(busy: Busy):
    calls = {row["function"]: row["calls"] for row in table(busy.model, "functions", "By calls")}
    assert (calls["postgres: tax"], calls["postgres: stamp"]) == (7, 50)
    assert [row["function"] for row in table(busy.model, "functions", "Of triggers, by time")] == ["postgres: stamp"]
    assert lacks(busy.model, "functions") == [
        "track_functions is none for the role of these snapshots; the sessions of others may count them"
    ]


def test_how_sessions_ended(busy: Busy, major: int):
    if major < 14:
        pytest.skip("counted from PostgreSQL 14 on")
    rows = table(busy.model, "throughput", "Sessions, by database")
    row = next(one for one in rows if one["database"] == "postgres")
    assert (row["killed"], row["abandoned"], row["fatal"]) == (1, 1, 0)
    assert row["total"] > 0


def test_statements_by_database_and_role(busy: Busy):
    assert line(busy.model, "totals", "second")["calls"] >= 5 + 2  # and what the extension's script runs
    clerk = next(row for row in table(busy.model, "totals", "By role") if row["of"] == "clerk")
    assert (clerk["calls"], clerk["statements"]) == (3, 1)


def test_the_title_and_the_table_give_a_statement_the_same_share(busy: Busy):
    """The title said 87 % where the table said 17 %: only one of them left out what the snapshots took themselves."""
    first, last = list(busy.lab.store)[-2:]
    with busy.lab.between(first, last) as interval:
        model = judged_report(interval, 1000)
    rows = table(model, "sql", "By time")
    assert math.isclose(sum(row["share"] for row in rows), 1)
    assert f"{rows[0]['share']:.0%} of it in " in model["verdict"]["title"]


def test_sizes_and_growth(busy: Busy):
    of_database, of_table, of_index = busy.sizes
    grown = table(busy.model, "sizes", "Tables by growth")[0]
    assert (grown["table"], grown["size"], grown["growth"]) == ("postgres: grown", of_table, of_table)
    assert grown["inserted"] == 2000
    assert line(busy.model, "sizes", "grown_idx")["size"] == of_index
    row = line(busy.model, "sizes", "postgres")
    assert row["size"] == pytest.approx(of_database, rel=0.02)
    assert row["growth"] >= of_table
    assert {"pg_default", "pg_global"} <= {row["tablespace"] for row in table(busy.model, "sizes", "Tablespaces")}


def test_blocks_of_toast_of_temporary_tables_and_of_indexes(busy: Busy):
    asked = {row["table"]: row for row in table(busy.model, "tables", "By blocks asked for")}
    doc = asked["postgres: doc"]
    assert doc["toast_asked"] >= 20 * 5000 // 2000, "a value of 5,000 bytes is three rows of TOAST"
    assert doc["asked"] == sum(doc[name] or 0 for name in ("tab_asked", "idx_asked", "toast_asked", "toast_idx_asked"))
    local = {row["text"]: row for row in table(busy.model, "sql", "By blocks of temporary tables")}
    assert local["select count(*) from kept"]["local"] >= busy.sizes[1] // 8192
    indexes = {row["index"]: row for row in table(busy.model, "indexes", "By blocks asked for")}
    assert indexes["grown_idx"]["asked"] > 2000 and indexes["grown_idx"]["scans"] == 0


def test_storage_parameters_that_changed_come_first(busy: Busy):
    first = table(busy.model, "settings", "Storage parameters of tables and indexes")[0]
    assert (first["name"], first["options"], first["before"]) == ("postgres: grown", "autovacuum_enabled=off", None)


def test_settings_that_are_not_the_default_and_those_that_changed(busy: Busy):
    changed = {row["setting"]: row["after"] for row in table(busy.model, "settings", "Changed")}
    assert changed["work_mem"] == "5120"
    kept = {row["setting"]: row["value"] for row in table(busy.model, "settings", "Not the default, at the end")}
    assert (kept["work_mem"], kept["autovacuum"]) == ("5120", "off")
    assert not kept.keys() & {"search_path", "statement_timeout", "application_name"}  # our own session's


def test_no_password_of_a_setting_lands_in_the_store(busy: Busy):
    """`primary_conninfo` stays set on a primary that was a standby; it was stored as it is."""
    rows = duckdb.sql(f"select name, setting from {busy.last.relation('pg_settings')}").fetchall()
    values = dict(rows)
    assert not [name for name, value in rows if "Geheim1" in (value or "")]
    assert values["archive_command"] == values["restore_command"] == "(hidden)"


def test_a_name_in_which_a_secret_may_stand_has_one_of_the_words_that_the_server_looks_for():
    names = (*SECRET_NAMES.pattern.strip("()").replace("(?!_enc)", "").split("|"), "ssl_passphrase_command")
    assert len(names) > 5
    for name in names:
        assert any(word in name for word in SECRET_WORDS), name


def test_extensions_and_the_database_of_what_came_and_went(busy: Busy):
    came = [row for row in table(busy.model, "changes", "") if row["kind"] == "table"]
    assert [(row["database"], row["name"], row["change"]) for row in came] == [("second", "public.came", "created")]
    row = table(busy.model, "extensions", "")[0]
    assert (row["extension"], row["change"]) == ("second: pg_buffercache", "created")


def test_the_deviation_of_one_call_is_none(busy: Busy):
    rows = table(busy.model, "sql", "By mean time")
    assert [row["sd"] for row in rows if "into grown" in (row["text"] or "")] == [None]


def test_functions_that_nobody_tracks_are_not_measured(lab: Lab):
    """And a role that may not see the size of a database is told so."""
    lab.run("create role poor login", "create database closed", "revoke connect on database closed from public")
    try:
        poor = Lab(lab.engine, lab.store.folder)
        poor.dsn = make_conninfo(lab.dsn, user="poor")
        model = poor.report(poor.take(), poor.take())
    finally:
        lab.run("drop database closed", "drop role poor")
    (lack,) = section(model, "functions")["not_measured"]
    assert (lack["why"], lack["next"]) == ("track_functions is none", "track_functions = all")
    assert not section(model, "functions")["tables"]
    assert line(model, "sizes", "postgres")["size"] > 0
    assert line(model, "sizes", "closed")["size"] is None
    assert any(one["next"] == "grant pg_monitor to poor" for one in section(model, "sizes")["not_measured"])


@pytest.mark.parametrize(("used", "told"), [(90, True), (89, False)])
def test_from_90_of_100_entries_on_top_sql_says_that_new_statements_push_others_out(
    tmp_path: Path, used: int, told: bool
):
    server = MadeServer(tmp_path / "snaps")
    server.settings["pg_stat_statements.max"] = "100"
    ends = []
    for _ in range(2):
        for number in range(used):
            server.call(number, 10, 5.0)
        ends.append(server.step())
    with Interval(server.store, *ends) as interval:
        notes = notes_on_statements(interval, [])
    said = f"{used} of 100 entries are in use (pg_stat_statements.max): new statements evict others"
    assert (said in notes) is told


def test_a_watch_reads_sizes_sparingly():
    """Each reading makes the server look at every file."""

    class Slow:
        read_views = 0

        def has(self, name: str) -> bool:
            return name == "pg_database"

        def read(self, source: Any) -> Any:
            from dbdyno.snapshot.engines.postgres.reader import Part

            self.read_views += 1
            time.sleep(0.01)
            return Part((), b"", elapsed_ns=10_000_000)

    reader, sizing = Slow(), SizesCache()
    taken = [sizing.read(reader)[0].elapsed_ns for _ in range(3)]  # type: ignore[arg-type]
    assert (reader.read_views, taken) == (1, [10_000_000, 0, 0])


def test_a_standby_and_what_it_follows(tmp_path: Path):
    with (
        EmbeddedPostgres(settings={**SETTINGS, "wal_level": "replica"}) as primary,
        Lab(primary, tmp_path / "one") as lab,
    ):
        if Standby.missing(primary):
            pytest.skip(str(Standby.missing(primary)))
        open_to_standbys(primary)
        lab.run("select pg_create_physical_replication_slot('second', true)", "create table t (id int)")
        with Standby(primary, "second") as follower:
            other = Lab(follower, tmp_path / "two")
            _until(other, "select status = 'streaming' from pg_stat_wal_receiver")
            ends = [(lab.take(), other.take())]
            lab.run("insert into t select generate_series(1, 5000)")
            _until(other, "select count(*) = 5000 from t")
            ends.append((lab.take(), other.take()))
            of_primary, of_standby = (
                one.report(*pair) for one, pair in zip((lab, other), zip(*ends, strict=True), strict=True)
            )
    (standby,) = table(of_primary, "replication", "Standbys")
    assert (standby["state"], standby["sync"]) == ("streaming", "async")
    (slot,) = table(of_primary, "replication", "Slots")
    assert (slot["slot"], slot["active"]) == ("second", "true")
    (receiver,) = table(of_standby, "replication", "Receiver")
    assert (receiver["status"], receiver["slot"]) == ("streaming", "second")
    assert line(of_standby, "replication", "replayed")["value"] > 5000 * 24  # at least the rows
    assert "this server is a standby" in section(of_standby, "replication")["notes"]
    hidden = next(
        r for r in table(of_standby, "settings", "Not the default, at the end") if r["setting"] == "primary_conninfo"
    )
    assert hidden["value"] == "(hidden)"


def test_what_a_slot_keeps_is_never_negative_and_nothing_where_it_keeps_none(lab: Lab):
    """Our position is read first, so that the slot of a busy server is past it: it "kept" −736 B; and a slot that was
    never used kept "0 B"."""
    slots = ("used", "unused")
    lab.run(*(f"select pg_create_physical_replication_slot('{name}', {name == 'used'})" for name in slots))
    try:
        ends = [lab.take(), lab.take()]
    finally:
        lab.run(*(f"select pg_drop_replication_slot('{name}')" for name in slots))
    for one in ends:
        one.facts["wal_bytes"] -= 10**9
    kept = {
        row["slot"]: (row["keeps"], row["keeps_before"]) for row in table(lab.report(*ends), "replication", "Slots")
    }
    assert kept == {"used": (0, 0), "unused": (None, None)}


def _until(lab: Lab, sql: str) -> None:
    """Wait until a query returns true, for at most a minute."""
    for _ in range(600):
        with contextlib.closing(lab.connect()) as conn, contextlib.suppress(psycopg.errors.UndefinedTable):
            row = conn.execute(sql).fetchone()  # type: ignore[arg-type]
            if row and row[0]:
                return
        time.sleep(0.1)
    raise AssertionError(sql)
