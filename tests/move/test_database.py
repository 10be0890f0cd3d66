"""Tests of `dbdyno move SOURCE TARGET --database`: a database with every kind of object arrives unchanged."""

from __future__ import annotations

import importlib.util
import json
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import psycopg
import pytest
from database_lab import ZOO, Databases, content, execute, make_database
from move_lab import SETTINGS
from psycopg.conninfo import make_conninfo

from command_line import dbdyno, on_a_terminal
from dbdyno.bench.postgres.binaries import WHEEL_PACKAGE, Binaries, inspect
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.move.database import finish_steps
from dbdyno.move.database.programs import find_programs
from memory_folder import roomy_memory
from together import meanwhile


def arrived(databases: Databases, **environment: str) -> Databases:
    """Move the database with every kind of object."""
    done = databases.moved(**environment)
    assert "Proved: each table received as many rows as were read; the target's tables and large objects" in done.stdout
    assert "Left to you" not in done.stdout
    return databases


@pytest.fixture(scope="module")
def moved(
    move_engine: EmbeddedPostgres,
    database_target: EmbeddedPostgres,
    tmp_path_factory: pytest.TempPathFactory,
    everything: str,
) -> Iterator[Databases]:
    """Return the databases after the full database was moved; tests only read in them."""
    made = Databases(move_engine, database_target, tmp_path_factory.mktemp("moved"), everything)
    yield arrived(made, DBDYNO_STATE=str(made.folder / "state"))
    made.close()


@pytest.fixture
def used(moved: Databases) -> Iterator[str]:
    """Return a copy of what arrived, for a test that changes it."""
    yield make_database(moved.there, f"{moved.name}_used", f"{moved.name}_target")
    execute(make_conninfo("", **moved.there.tcp_conninfo()), f"drop database {moved.name}_used with (force)")


def newer() -> Binaries:
    """Return the programs of PostgreSQL 18 from the wheel."""
    spec = importlib.util.find_spec(WHEEL_PACKAGE)
    folders = [Path(place) / "pginstall18" / "bin" for place in (spec.submodule_search_locations or [])] if spec else []
    found = next(inspect(folders, "wheel"), None)
    if found is None:
        pytest.skip("the wheel of this machine has no PostgreSQL 18: make setup-test")
    return found


@pytest.fixture(scope="module")
def newer_engine() -> Iterator[EmbeddedPostgres]:
    """Start a PostgreSQL of the next version."""
    with EmbeddedPostgres(settings=SETTINGS, workdir=roomy_memory(), binaries=newer()) as running:
        yield running


def test_rows_sequences_and_large_objects_are_those_of_the_source(moved: Databases) -> None:
    here, there = content(moved.source), content(moved.target)
    assert set(here) == set(there)
    assert {name for name in here if here[name] != there[name]} == set()
    assert len(here["app.people"]) == 2000
    assert there["app.counter"] == [(46, False)]
    assert there["app.nothing"] == ["()", "()"]
    assert len(there["large objects"]) == 3


def test_pg_dump_writes_the_same_schema_of_both(moved: Databases) -> None:
    programs = find_programs(15).bindir
    assert moved.schema(moved.source, programs) == moved.schema(moved.target, programs)


def test_the_target_is_ready_for_use(moved: Databases, used: str) -> None:
    there = moved.target
    assert moved.rows(there, "select nspname from pg_namespace where nspname ~ 'dbdyno'") == []
    assert moved.rows(there, "select count(*) from app.grand") == [(1,)]
    assert moved.rows(there, "select relispopulated from pg_class where relname = 'unfilled'") == [(False,)]
    assert moved.rows(there, "select count(*) > 20 from pg_stats where schemaname = 'app'") == [(True,)]
    assert moved.rows(there, "select count(*) from pg_index where not indisvalid") == [(0,)]
    assert moved.rows(there, "select count(*) from pg_statistic_ext_data") == [(1,)]
    moved.run(used, "insert into app.people (email) values ('new')")
    assert moved.rows(used, "select id, touched from app.people where email = 'new'") == [(2001, "x;--2001")]
    with pytest.raises(Exception, match="no DDL here"):
        moved.run(used, "create table app.more (i int)")


def test_the_job_is_known_to_status_and_report(moved: Databases, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBDYNO_STATE", str(moved.folder / "state"))  # a job of this user, not one from elsewhere
    assert "complete" in dbdyno("move", "status", moved.job).stdout
    found = json.loads(dbdyno("report", moved.job, "--format", "json").stdout)
    assert found["verdict"]["word"] == "Complete"
    assert "the job is complete" in moved.resume().stderr


def test_the_archive_of_the_schema_is_for_its_owner_alone(moved: Databases) -> None:
    place = moved.job / "_dbdyno" / "schema.dump"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_the_result_as_json(databases: Databases) -> None:
    databases.run(databases.source, "create table t as select generate_series(1, 10) i", "create index on t (i)")
    found = json.loads(databases.move("--json").stdout)
    (table,) = found["tables"]
    assert (table["table"], table["rows"]) == ("public.t", 10)
    assert found["objects"] == {"table": 1, "index": 1}
    assert found["differs"] == []
    assert found["rows_checked"] is True


def test_a_dry_run_lists_everything_and_changes_nothing(full: Databases) -> None:
    done = full.moved("--dry-run")
    for words in (
        "app.people: ",
        "app.orders_note on orders: ",
        "app.counter: 46",
        "3 large objects",
        "2 foreign keys",
    ):
        assert words in done.stdout
    assert full.rows(full.target, "select count(*) from pg_class where oid >= 16384") == [(0,)]
    assert not full.job.exists()
    found = json.loads(full.move("--dry-run", "--format", "json").stdout)
    assert found["large_objects"] == 3
    assert {one["table"] for one in found["tables"]} >= {"app.people", "app.events_rest1"}


def test_counts_alone_are_checked_where_that_is_asked_for(databases: Databases) -> None:
    databases.run(databases.source, "create table t as select generate_series(1, 10) i")
    done = databases.moved("--verify", "counts")
    assert "Not checked: the target's tables were not read again" in done.stdout


def test_an_empty_database_can_be_moved(databases: Databases) -> None:
    done = databases.moved()
    assert "0 rows in 0 tables" in done.stdout


def test_a_schema_public_that_the_source_lacks_is_dropped(databases: Databases) -> None:
    databases.run(databases.source, "drop schema public", "create schema own", "create table own.t (i int)")
    databases.moved()
    assert databases.rows(databases.target, "select to_regnamespace('public') is null") == [(True,)]


def test_a_schema_public_that_belongs_to_a_role_as_before_15_does_so_in_the_target(databases: Databases) -> None:
    databases.run(databases.source, "alter schema public owner to current_user")
    databases.moved()
    owner = "select nspowner::regrole::text from pg_namespace where nspname = 'public'"
    assert databases.rows(databases.target, owner) == databases.rows(databases.source, owner)


def test_roles_that_lack_are_told_and_not_made(databases: Databases) -> None:
    databases.run(
        databases.source,
        'create role "gone; role"',
        "create table kept (i int)",
        "create table owned (i int)",
        'alter table owned owner to "gone; role"',
        'grant select on kept to reader, "gone; role"',
        "alter table kept enable row level security",
        'create policy theirs on kept to "gone; role" using (true)',
    )
    done = databases.move()
    there = databases.target
    assert done.returncode == 0, done.stdout
    assert "role gone; role is missing at the target" in done.stdout
    assert "policy public.kept theirs is left out" in done.stdout
    assert databases.rows(there, "select count(*) from pg_roles where rolname ~ 'gone'") == [(0,)]
    assert databases.rows(there, "select has_table_privilege('reader', 'kept', 'select')") == [(True,)]
    databases.run(databases.source, 'drop owned by "gone; role"', 'drop role "gone; role"')


def test_what_belongs_to_the_database_itself_is_told(databases: Databases) -> None:
    name = databases.rows(databases.source, "select current_database()")[0][0]
    databases.run(databases.source, f"alter database {name} set work_mem = '7MB'", f"comment on database {name} is 'x'")
    done = databases.moved()
    assert "ALTER DATABASE ... SET work_mem=7MB" in done.stdout
    assert "the comment on the database" in done.stdout


def test_a_table_whose_rows_were_changed_on_the_way_is_named(databases: Databases) -> None:
    databases.run(databases.source, "create table t as select generate_series(1, 10) i", "create table u (i int)")
    whole = finish_steps.set_sequences

    def change(conn: object, sequences: object) -> None:
        databases.run(databases.target, "update t set i = 11 where i = 3")
        whole(conn, sequences)  # type: ignore[arg-type]

    with mock.patch.object(finish_steps, "set_sequences", change):
        done = databases.move()
    assert done.returncode == 1
    assert "DIFFERS: public.t: 10 rows, hash" in done.stdout
    assert "public.u" not in done.stdout


def test_an_object_that_was_changed_on_the_way_is_named(databases: Databases) -> None:
    databases.run(databases.source, "create table t (i int not null, j int)", "create index t_i on t (i)")
    whole = finish_steps.set_sequences

    def change(conn: object, sequences: object) -> None:
        databases.run(databases.target, "drop index t_i", "alter table t alter i drop not null", "create table v ()")
        whole(conn, sequences)  # type: ignore[arg-type]

    with mock.patch.object(finish_steps, "set_sequences", change):
        done = databases.move("--verify", "counts")
    assert done.returncode == 1
    assert "DIFFERS: index public.t_i is missing" in done.stdout
    assert "DIFFERS: table public.v is not in the source" in done.stdout
    assert "DIFFERS: table public.t: `i integer,`, in the source `i integer NOT NULL,`" in done.stdout


def test_the_password_is_in_no_argument_of_pg_dump(databases: Databases, tmp_path: Path) -> None:
    databases.over_tcp()
    real, told = find_programs(15), tmp_path / "told"
    folder = tmp_path / "bin"
    folder.mkdir()
    script = f'#!/bin/sh\n[ "$1" = --version ] || echo "$@" >> {told}\nexec {real.bindir}/pg_dump "$@"\n'
    (folder / "pg_dump").write_text(script)
    (folder / "pg_dump").chmod(0o700)
    databases.run(databases.source, "create table t (i int)")
    done = databases.moved(DBDYNO_PG_BIN=str(folder))
    words = told.read_text()
    assert "--snapshot=" in words
    for engine in (databases.here, databases.there):
        assert engine.password not in words
        assert engine.password not in done.stdout + done.stderr
        assert engine.password not in (databases.job / "_dbdyno" / "manifest.json").read_text()


def test_a_move_to_the_next_version_carries_optimizer_statistics(
    move_engine: EmbeddedPostgres, newer_engine: EmbeddedPostgres, tmp_path: Path, everything: str
) -> None:
    databases = Databases(move_engine, newer_engine, tmp_path, everything)
    databases.run(databases.source, "analyze app.people", "analyze app.orders")
    done = databases.moved()
    assert "Optimizer statistics: carried from the source" in done.stdout
    here, moved = content(databases.source), content(databases.target)
    assert {name for name in here if here[name] != moved[name]} == set()
    asked = "select attname, n_distinct, most_common_vals::text from pg_stats where tablename = 'orders' order by 1"
    assert databases.rows(databases.source, asked) == databases.rows(databases.target, asked)
    databases.close()


def test_an_older_target_is_told(move_engine: EmbeddedPostgres, newer_engine: EmbeddedPostgres, tmp_path: Path) -> None:
    databases = Databases(newer_engine, move_engine, tmp_path)
    databases.run(databases.source, "create table t (i int primary key)", "insert into t values (1)")
    done = databases.move()
    assert "the target is older (15) than the source (18)" in done.stdout, done.stderr
    assert databases.rows(databases.target, "select i from t") == [(1,)]
    databases.close()


def test_columns_of_an_extensions_type_arrive(databases: Databases) -> None:
    if not databases.rows(databases.source, "select 1 from pg_available_extensions where name = 'citext'"):
        pytest.skip("the server has no citext (postgresql-contrib): make setup-test")
    databases.run(
        databases.source,
        "create extension citext",
        "create table names (n citext primary key)",
        "insert into names values ('Ada'), ('Bob')",
    )
    databases.moved()
    assert databases.rows(databases.target, "select n::text from names where n = 'ADA'") == [("Ada",)]


def test_a_role_that_is_no_superuser_moves_what_it_may(databases: Databases) -> None:
    databases.run(
        databases.source,
        "create schema app create table t (id serial primary key)",
        "grant usage on schema app to reader",
    )
    databases.run(databases.target, "create role mover login password 'mover'")
    name = databases.rows(databases.target, "select current_database()")[0][0]
    databases.run(databases.target, f"alter database {name} owner to mover")
    try:
        databases.target = make_conninfo(databases.target, user="mover", password="mover")
        done = databases.moved()
        assert "not given to postgres, because the job's role may not act for it (schema app, " in done.stdout
        assert databases.rows(databases.target, "select has_schema_privilege('reader', 'app', 'usage')") == [(True,)]
    finally:
        databases.target = make_conninfo(databases.target, user="postgres", password=databases.there.password)
        databases.run(
            databases.target, f"alter database {name} owner to postgres", "drop owned by mover", "drop role mover"
        )


def test_rows_that_row_level_security_hides_are_not_left_behind(databases: Databases) -> None:
    databases.run(
        databases.source,
        "create table t (i int)",
        "alter table t enable row level security",
        "create role blind login password 'blind'",
        "grant select on t to blind",
    )
    try:
        databases.source = make_conninfo(databases.source, user="blind", password="blind")
        done = databases.move()
        assert "row-level security hides rows of public.t from the role blind" in done.stderr
        assert not databases.job.exists()
    finally:
        databases.source = make_conninfo(databases.source, user="postgres", password=databases.here.password)
        databases.run(databases.source, "drop owned by blind", "drop role blind")


def test_rare_kinds_of_objects_arrive(databases: Databases) -> None:
    databases.run(databases.source, *ZOO.split(";\n"))
    databases.moved()
    programs = find_programs(15).bindir
    assert databases.schema(databases.source, programs) == databases.schema(databases.target, programs)
    here, there = content(databases.source), content(databases.target)
    assert {name for name in here if here[name] != there[name]} == set()
    assert databases.rows(databases.target, "select format('%s', c) from z.colors order by c") == [("r",), ("g",)]


def test_a_subscription_is_made_and_does_nothing(databases: Databases) -> None:
    made = "create subscription sub connection 'host=nowhere' publication p with (connect = false, slot_name = none)"
    databases.run(databases.source, made)
    try:
        done = databases.moved()
        assert "subscription sub is disabled" in done.stdout
        assert databases.rows(databases.target, "select subname::text, subenabled from pg_subscription") == [
            ("sub", False)
        ]
    finally:
        for dsn in (databases.source, databases.target):
            databases.run(dsn, "drop subscription if exists sub")


def test_writers_go_on_and_everything_is_of_one_instant(databases: Databases) -> None:
    databases.run(
        databases.source,
        "create table head (id bigserial primary key)",
        "create table line (id bigint primary key references head)",
    )

    def write(stop: threading.Event) -> None:
        with psycopg.connect(databases.source) as conn:
            while not stop.is_set():
                conn.execute(
                    "with h as (insert into head default values returning id) insert into line select id from h"
                )
                conn.commit()

    with meanwhile(write):
        done = databases.move()
    assert done.returncode == 0, done.stdout + done.stderr
    asked = "select (select count(*) from head) = (select count(*) from line), count(*) > 0 from line"
    assert databases.rows(databases.target, asked) == [(True, True)]
    (last,) = databases.rows(databases.target, "select nextval('head_id_seq') > max(id) from head")
    assert last == (True,)


def test_a_terminal_shows_how_far_rows_and_indexes_are(databases: Databases) -> None:
    databases.run(
        databases.source,
        "create table t as select g, md5(g::text) m from generate_series(1, 20000) g",
        "create index on t (m)",
    )
    shown = on_a_terminal("move", databases.source, databases.target, "--database", "--job", databases.job)
    assert shown.count(b"100%") == 3  # rows, indexes, the target read again
    assert b"rows: 1 table" in shown
    assert b"indexes and constraints: 1 to build" in shown


def test_bytes_of_no_encoding_stay_as_they_are(databases: Databases) -> None:
    for dsn, end in ((databases.source, "source"), (databases.target, "target")):
        name, server = f"{databases.name}_{end}", dsn.replace(f"{databases.name}_{end}", "postgres")
        made = f"create database {name} encoding sql_ascii template template0 lc_collate 'C' lc_ctype 'C'"
        databases.run(server, f"drop database {name}", made)
    databases.run(
        databases.source,
        "create table t (a text, e text[])",
        r"insert into t values (convert_from('\xe9ff', 'SQL_ASCII'), array[convert_from('\xc3', 'SQL_ASCII')])",
    )
    databases.moved()
    asked = "select encode(convert_to(a, 'SQL_ASCII'), 'hex'), encode(convert_to(e[1], 'SQL_ASCII'), 'hex') from t"
    assert databases.rows(databases.target, asked) == [(b"e9ff", b"c3")]  # psycopg decodes nothing


def test_a_database_in_another_encoding_is_converted_and_told(databases: Databases) -> None:
    name, server = f"{databases.name}_source", databases.source.replace(f"{databases.name}_source", "postgres")
    made = f"create database {name} encoding latin1 template template0 lc_collate 'C' lc_ctype 'C'"
    databases.run(server, f"drop database {name}", made)
    databases.run(
        databases.source,
        "set client_encoding = 'UTF8'",
        'create table "né" ("ü" text)',
        "insert into \"né\" values ('été')",
    )
    done = databases.moved()
    assert "the target's encoding is UTF8, the source's LATIN1" in done.stdout
    assert databases.rows(databases.target, 'select "ü" from "né"') == [("été",)]
