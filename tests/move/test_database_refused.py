"""Tests of refused database moves: the target is in use, not empty or a standby, or the request is contradictory."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psycopg
import pytest
from database_lab import Databases
from psycopg.conninfo import make_conninfo

from command_line import dbdyno
from dbdyno.base.errors import MoveError
from dbdyno.move.database.archive import read
from dbdyno.move.database.finish_steps import tables_without_statistics
from dbdyno.move.database.programs import find_programs
from standby import Standby, open_to_standbys


def untouched(databases: Databases, found: str) -> None:
    """Check that the move is refused with these words and writes nothing."""
    before = databases.rows(databases.target, "select count(*), max(oid) from pg_class")
    done = databases.move()
    assert done.returncode == 2, done.stdout
    assert found in done.stderr
    assert "next: " in done.stderr
    assert databases.rows(databases.target, "select count(*), max(oid) from pg_class") == before
    assert not databases.job.exists()


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("create table kept (i int)", "table public.kept"),
        ("create view v as select 1", "view public.v"),
        ("create function f() returns int language sql as 'select 1'", "function public.f"),
        ("create type t as enum ('a')", "type public.t"),
        ("create schema own", "schema own"),
        ("create sequence s", "sequence public.s"),
        ("select lo_create(4711)", "large object 4711"),
        ("create publication p", "publication p"),
        ("alter default privileges grant select on tables to public", "default privileges of postgres"),
    ],
)
def test_a_target_that_is_not_empty(databases: Databases, statement: str, found: str) -> None:
    databases.run(databases.target, statement)
    untouched(databases, f"is not empty: {found}")


def test_an_extension_in_the_target_is_no_obstacle(databases: Databases) -> None:
    if not databases.rows(databases.source, "select 1 from pg_available_extensions where name = 'citext'"):
        pytest.skip("the server has no citext (postgresql-contrib): make setup-test")
    for dsn in (databases.source, databases.target):
        databases.run(dsn, "create extension citext")
    databases.moved()


def test_a_role_that_is_no_superuser_finds_the_tables_to_analyse(databases: Databases) -> None:
    made = "create table {0} (i int); insert into {0} values (1); alter table {0} owner to pg_monitor"
    for name in ("analysed", "bare"):
        databases.run(databases.target, *made.format(name).split("; "))
    databases.run(databases.target, "analyze analysed")
    with psycopg.connect(databases.target) as conn:
        conn.execute("set role pg_monitor")
        assert tables_without_statistics(conn) == [("public", "bare")]


def test_a_target_that_others_use(databases: Databases) -> None:
    databases.over_tcp()
    with psycopg.connect(databases.target, application_name="shop") as conn:
        conn.execute("select 1")
        untouched(databases, f"1 session of other clients: shop (postgres, 127.0.0.1/32, pid {conn.info.backend_pid})")


def test_a_target_that_is_a_standby(databases: Databases) -> None:
    engine = databases.there
    if lacks := Standby.missing(engine):
        pytest.skip(lacks)
    open_to_standbys(engine)
    databases.run(databases.target, "select pg_create_physical_replication_slot('follower')")
    try:
        with Standby(engine, "follower", shared_preload_libraries="") as standby:
            dsn = make_conninfo("", **{**standby.conninfo(), "dbname": f"{databases.name}_target"})
            done = dbdyno("move", databases.source, dsn, "--database", "--job", databases.job)
            assert done.returncode == 2
            assert "the server is a standby, which takes no writes" in done.stderr
    finally:
        databases.run(databases.target, "select pg_drop_replication_slot('follower')")


def test_the_source_itself(databases: Databases) -> None:
    done = dbdyno("move", databases.source, databases.source, "--database", "--job", databases.job)
    assert "is the source database" in done.stderr


def test_a_role_that_may_not_write_there(databases: Databases) -> None:
    databases.run(databases.target, "create role weak login password 'weak'")
    try:
        dsn = make_conninfo(databases.target, user="weak", password="weak")
        done = dbdyno("move", databases.source, dsn, "--database", "--job", databases.job)
        assert "the role weak may not create schemas in this database" in done.stderr
    finally:
        databases.run(databases.target, "drop role weak")


def test_the_target_of_an_unfinished_job_is_named_with_its_folder(databases: Databases) -> None:
    databases.run(
        databases.target,
        "create schema dbdyno_move",
        "create table dbdyno_move.job (id text, folder text)",
        "insert into dbdyno_move.job values ('0a1b2c3d', '/jobs/one')",
    )
    done = databases.move()
    assert "the unfinished job 0a1b2c3d is in this database" in done.stderr
    assert "dbdyno move resume /jobs/one" in done.stderr
    done = dbdyno("move", databases.target, databases.source, "--database", "--job", databases.job)
    assert "is the target of the unfinished job 0a1b2c3d" in done.stderr


def test_a_schema_of_the_name_that_moves_need(databases: Databases) -> None:
    databases.run(databases.source, "create schema dbdyno_move")
    untouched(databases, "has a schema dbdyno_move, which is the name that a move uses for its own schema")


def test_an_extension_that_the_target_does_not_have_is_named(databases: Databases) -> None:
    databases.run(databases.source, "create extension hstore" if _has(databases, "hstore") else "select 1")
    if not _has(databases, "hstore"):
        pytest.skip("the server has no citext (postgresql-contrib): make setup-test")
    # The target's server is asked for one that is nowhere.
    databases.run(databases.source, "update pg_extension set extname = 'nowhere' where extname = 'hstore'")
    done = databases.move()
    assert done.returncode == 2
    assert 'extension nowhere: extension "nowhere" is not available' in done.stderr
    assert "install the package of the extension nowhere" in done.stderr
    assert databases.rows(databases.target, "select to_regnamespace('dbdyno_move') is null") == [(True,)]


def _has(databases: Databases, name: str) -> bool:
    found = databases.rows(databases.source, f"select 1 from pg_available_extensions where name = '{name}'")
    return bool(found)


def test_no_pg_dump_of_the_newer_server() -> None:
    with pytest.raises(MoveError, match="no pg_dump of PostgreSQL 99 or newer is installed"):
        find_programs(99)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--table", "t"), "--table works only for single tables: --database moves all tables"),
        (("--into", "t"), "--into works only for single tables"),
        (("--mode", "replace"), "--mode works only for single tables"),
        (("--create",), "--create works only for single tables"),
        (("--verify", "source"), "--verify counts or target"),
        (("--verify", "files"), "--verify counts or target"),
    ],
)
def test_options_of_tables_are_not_for_databases(databases: Databases, words: tuple[str, ...], said: str) -> None:
    done = databases.move(*words)
    assert done.returncode == 2
    assert said in done.stderr


def test_other_engines_and_files_have_no_database_to_move(databases: Databases) -> None:
    done = dbdyno("move", "mariadb://me@127.0.0.1/shop", databases.target, "--database")
    assert "--database moves a PostgreSQL database into another PostgreSQL database" in done.stderr
    done = dbdyno("move", databases.source, "folder/", "--database")
    assert "write postgresql://user@host/database for both" in done.stderr


def test_the_form_of_the_output_is_for_databases(databases: Databases) -> None:
    done = dbdyno("move", databases.source, "out/", "--table", "t", "--format", "json")
    assert "--format works only with --database" in done.stderr


def test_a_job_of_a_database_cannot_mix_instants(databases: Databases) -> None:
    with contextlib.suppress(FileNotFoundError):
        databases.job.rmdir()
    databases.run(databases.source, "create table t (i int)")
    databases.moved()
    assert "--as-of-now does not work with a database" in databases.resume("--as-of-now").stderr


@pytest.mark.parametrize(
    "content", [b"", b"PGDMP", b"PGDMP\x01\x63\x00\x04\x08\x01", b"PGDMP\x01\x0e\x00\x04\x08\x01\x00\x09"]
)
def test_a_file_that_is_no_archive(tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "x.dump"
    place.write_bytes(content)
    with pytest.raises(MoveError, match=r"is not a complete archive|is an archive of version 1\.99"):
        read(place)
