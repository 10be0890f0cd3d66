"""Tests of `move SOURCE TARGET --database --mask`: columns arrive masked, joins still match, and no original value
arrives."""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from database_lab import Databases
from psycopg.conninfo import make_conninfo

from command_line import dbdyno
from dbdyno.base.errors import MoveError
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.database.inventory import take_inventory
from dbdyno.move.database.mask_key import derived_key, digest_of, key_sql
from dbdyno.move.database.masks import apply_masks, read_masks
from dbdyno.move.engines.postgres.columns import Column
from dbdyno.move.engines.postgres.source import Table
from dbdyno.move.reading.run import Plan

SCHEMA = """
create schema app;
create domain app.name as varchar(20);
create table app.people (email text primary key, phone varchar(16), name app.name, born date, seen timestamptz,
    token uuid, number int, note text, tall numeric, code char(4), picture bytea, check (phone ~ '^[+0-9 -]+$'));
insert into app.people select 'p' || i || '@example.org', '+49 30 ' || 1000000 + i, 'Anna Zoë ' || i,
    '1950-03-02'::date + i * 11, '2020-05-06 07:08:09+00'::timestamptz + i * interval '1 day',
    ('00000000-0000-4000-8000-' || lpad(i::text, 12, '0'))::uuid, i % 50, case when i % 3 > 0 then 'secret ' || i end,
    i / 7.0, 'k' || i % 9, decode('00ff' || lpad(i::text, 4, '0'), 'hex') from generate_series(1, 3000) i;
create table app.orders (id serial primary key, email text references app.people, person_number bigint, note text);
insert into app.orders (email, person_number, note) select 'p' || 1 + i % 3000 || '@example.org', i % 50, 'note ' || i
    from generate_series(1, 5000) i;
create table app.visits (id int, day date, who text not null) partition by range (day);
create table app.visits_1 partition of app.visits for values from ('2020-01-01') to ('2021-01-01');
create table app.visits_2 partition of app.visits default;
insert into app.visits select i, '2020-06-01'::date + i, 'p' || i || '@example.org' from generate_series(1, 400) i;
create materialized view app.domains as select split_part(email, '@', 2) as domain, count(*) from app.people group by 1;
create view app.young as select * from app.people where born > '2000-01-01';
create index people_note on app.people (lower(note));
create table app.made (a int, b int generated always as (a * 2) stored, u int unique);
"""
MASKS = (
    "app.people.email = hash",
    "orders.email = hash",
    "people.phone = keep-length",
    "people.name = keep-length",
    "people.born=year",
    "people.seen = year",
    "people.token = hash",
    "people.number = hash",
    "app.orders.person_number = hash",
    'people."note" = null',
    "people.tall = null",
    "people.code = constant:none",
    "people.picture = hash",
    "app.visits.who = hash",
)


@pytest.fixture
def people(databases: Databases) -> Databases:
    databases.run(databases.source, SCHEMA)
    return databases


@pytest.fixture(scope="module")
def catalog(move_engine: EmbeddedPostgres) -> Iterator[Postgres]:
    """Return a database with the schema; no test changes it."""
    admin = psycopg.connect(**move_engine.conninfo(), autocommit=True)
    admin.execute("create database masked_catalog")
    where = {**move_engine.conninfo(), "dbname": "masked_catalog"}
    with psycopg.connect(**where, autocommit=True) as conn:
        conn.execute(SCHEMA.replace("3000", "9").replace("(1, 5000)", "(1, 9)"))
    yield Postgres.open(make_conninfo("", **where))
    admin.execute("drop database masked_catalog with (force)")
    admin.close()


def words(masks: tuple[str, ...]) -> list[str]:
    return [word for one in masks for word in ("--mask", one)]


def test_masked_columns_arrive_masked_and_joins_hold(people: Databases) -> None:
    done = people.moved(*words(MASKS))
    assert "Masked: app.people.email = hash; orders.email = hash" in done.stdout
    assert "the check constraint people_phone_check names phone" in done.stdout
    assert "Proved:" in done.stdout and "DIFFERS" not in done.stdout

    def both(query: str) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        return people.rows(people.source, query), people.rows(people.target, query)

    here, there = both("select count(*), count(distinct p.email) from app.orders o join app.people p using (email)")
    assert here == there == [(5000, 3000)]
    here, there = both("select count(*) from app.people p join app.visits v on v.who = p.email")
    assert here == there
    here, there = both("select count(*) from app.people p join app.orders o on o.person_number = p.number")
    assert here == there, "integer and bigint have the same hash"
    shapes = "select regexp_replace(phone, '[0-9]', '9', 'g'), length(name), name like '____ ___ %' from app.people"
    here, there = both(f"{shapes} order by 1, 2")
    assert here == there, "lengths, blanks and signs stay"
    query = "select count(*), count(note), count(tall), bool_and(born = date_trunc('year', born)) from app.people"
    assert people.rows(people.target, query) == [(3000, 0, 0, True)]
    years = "select extract(year from born), extract(year from seen at time zone 'UTC') from app.people order by 1, 2"
    here, there = both(years)
    assert here == there
    for column in ("email", "phone", "name", "token", "picture"):
        here, there = both(f"select {column} from app.people")
        assert not set(here) & set(there), f"{column} has no value of the source"
    assert people.rows(people.target, "select * from app.domains")[0][0] == "", "it is refreshed from what is masked"
    assert people.rows(people.target, "select distinct code from app.people") == [("none",)]
    held = people.rows(people.target, "select most_common_vals::text || histogram_bounds::text from pg_stats")
    assert "example.org" not in str(held), "statistics hold no value of the source"
    assert people.rows(people.target, "select to_regnamespace('dbdyno_move')") == [(None,)], "the key is gone"
    files = b"".join(file.read_bytes() for file in people.job.rglob("*") if file.is_file())
    assert b"p17@example.org" not in files


@pytest.mark.soak
def test_another_move_has_another_key(people: Databases) -> None:
    email = "select email from app.people order by born limit 1"
    seen = set()
    for at in range(2):
        people.job = people.job.with_name(f"job{at}")
        assert people.move(*words(("app.people.email = hash", "orders.email = hash"))).returncode == 0
        seen.add(people.rows(people.target, email)[0])
        people.run(people.target, "drop schema app cascade")
    assert len(seen) == 2


def test_copies_with_one_key_file_have_equal_masked_values(people: Databases, tmp_path: Path) -> None:
    masks = words(("app.people.email = hash", "orders.email = hash", "people.name = keep-length"))
    seen = []
    for at, key in enumerate((b"k" * 32, b"k" * 32)):
        file = tmp_path / f"{at}.key"
        file.write_bytes(base64.b64encode(key))
        file.chmod(0o600)
        people.job = people.job.with_name(f"job{at}")
        done = people.moved(*masks, "--mask-key-file", file)
        seen.append(people.rows(people.target, "select email, name from app.people order by born limit 9"))
        written = done.stdout.encode() + b"".join(one.read_bytes() for one in people.job.rglob("*") if one.is_file())
        assert base64.b64encode(key) not in written and derived_key(key).encode() not in written
        people.run(people.target, "drop schema app cascade")
    assert seen[0] == seen[1]
    assert derived_key(b"k" * 32) != derived_key(b"l" * 32)
    refused = people.move("--mask-key-file", file)
    assert (refused.returncode, "--mask-key-file works only with --mask" in refused.stderr) == (2, True), refused.stderr


def test_a_job_does_not_go_on_with_another_mask_key(people: Databases) -> None:
    people.run(people.target, "create schema dbdyno_move")
    column = Column("email", "text", "text", mask="hash")
    plan = Plan(
        "job", "", "", (Table("app", "people", "table", (column,), ()),), (), database={"mask_key": digest_of("a")}
    )
    with psycopg.connect(people.target, autocommit=True) as conn:
        with pytest.raises(MoveError, match="was started with another key"):
            key_sql(conn, plan, "")
        assert key_sql(conn, plan, "a") == ["select set_config('dbdyno_mask.key', 'a', false)"]
        assert key_sql(conn, plan, "") == key_sql(conn, plan, "b"), "the target has the key until the job ends"
        assert len(key_sql(conn, replace(plan, database={}), "")) == 1


@pytest.mark.parametrize(
    ("masks", "says"),
    [
        (("people.email",), "is not a mask"),
        (("people.email = scramble",), "there is no mask method 'scramble'"),
        (("people.email = hash", "people.email = null"), "that another --mask already masks"),
        (("peple.email = hash",), "did you mean people?"),
        (("people.mail = hash",), "app.people has no column mail"),
        (("app.young.email = hash",), "has no rows of its own"),
        (("people.email = hash",), "both sides need the same mask"),
        (("orders.email = hash", "people.email = keep-length"), "both sides need the same mask"),
        (("visits.who = null",), "the column is NOT NULL"),
        (("people.tall = hash",), "hash does not support the type numeric"),
        (("people.email = year",), "use one of: hash, keep-length, constant, null"),
        (("people.email = constant",), "constant needs a value"),
        (("people.email = hash:x",), "hash takes no value"),
        (("people.born = constant:soon",), 'invalid input syntax for type date: "soon"'),
        (("made.u = constant:7",), "must be unique"),
        (("visits.day = year",), "is partitioned by this column"),
        (("made.b = null",), "computes it from other columns"),
        (("made.u = hash",), "must be unique"),
    ],
)
def test_what_cannot_be_masked_is_an_error_with_a_reason(catalog: Postgres, masks: tuple[str, ...], says: str) -> None:
    with pytest.raises(MoveError, match=re.escape(says)):
        named = read_masks(masks)
        snapshot, inventory = take_inventory(catalog, "test")
        with snapshot:
            apply_masks(snapshot, inventory, named)


def test_a_mask_that_is_refused_leaves_nothing(people: Databases) -> None:
    for more in ((), ("--dry-run",)):
        done = people.move(*words(("people.email = hash",)), *more)
        assert (done.returncode, "both sides need the same mask" in done.stderr) == (2, True), done.stdout + done.stderr
        assert "next: mask the column of the other table" in done.stderr
        assert not people.job.exists()
        assert people.rows(people.target, "select to_regnamespace('dbdyno_move'), to_regnamespace('app')") == [
            (None, None)
        ]
    planned = people.move(*words(("people.phone = keep-length",)), "--dry-run")
    assert "Masked: people.phone = keep-length" in planned.stdout
    assert "Note: the check constraint people_phone_check names phone" in planned.stdout


def test_a_reference_may_be_removed_on_its_own_side(people: Databases) -> None:
    people.moved(*words(("orders.email = null",)))
    assert people.rows(people.target, "select count(email) from app.orders") == [(0,)]


def test_two_tables_of_one_name_need_their_schema(people: Databases) -> None:
    people.run(people.source, "create table public.people (email text)")
    done = people.move("--mask", "people.email = hash", "--dry-run")
    assert (done.returncode, "the name is ambiguous; tables with this name: " in done.stderr) == (2, True), done.stderr
    assert people.move(*words(("public.people.email = hash",)), "--dry-run").returncode == 0


def test_a_mask_is_for_a_whole_database(databases: Databases) -> None:
    done = dbdyno("move", databases.source, databases.target, "--table", "people", "--mask", "people.email = hash")
    assert (done.returncode, "--mask works only with --database" in done.stderr) == (2, True), done.stderr


def test_names_are_written_as_in_sql() -> None:
    with pytest.raises(MoveError, match="is not a mask"):
        read_masks(["a.b.c.d = hash"])
    assert read_masks(["a.b = Constant: it's 5 % : x "])[0].method_text == "constant:it's 5 % : x"
    assert read_masks(['"Odd.Schema"."Tab""le".C = HASH'])[0].names == ("Odd.Schema", 'Tab"le', "c")


@pytest.mark.soak
def test_a_killed_job_goes_on_with_its_own_key(people: Databases) -> None:
    people.run(
        people.source,
        "create table app.many as select i, 'p' || 1 + i % 3000 || '@example.org' as email, repeat('x', 500) as pad"
        " from generate_series(1, 150000) i",
    )
    masks = ("app.people.email = hash", "orders.email = hash", "many.email = hash")
    command = ["move", people.source, people.target, "--database", "--job", str(people.job), *words(masks)]
    command += ["--workers", "1", "--rate-limit", "20MB"]
    with subprocess.Popen([sys.executable, "-m", "dbdyno", *command], env=os.environ) as running:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if not people.job.exists():
                # A session of others would be a reason to refuse the move.
                time.sleep(0.02)
                continue
            with psycopg.connect(people.target, autocommit=True, application_name="dbdyno test") as conn:
                begun = conn.execute("select to_regclass('dbdyno_move.chunk')").fetchone() != (None,)
                if begun and conn.execute("select count(*) > 1 from dbdyno_move.chunk").fetchone() == (True,):
                    break
            time.sleep(0.02)
        running.send_signal(signal.SIGKILL)
    other = people.move(*words(("people.email = null",)))
    assert (other.returncode, "the job was started with app.people.email = hash; orders" in other.stderr) == (
        2,
        True,
    ), other.stderr
    people.moved(*words(masks))
    joined = "select count(*) from app.many m join app.people p using (email)"
    assert people.rows(people.target, joined) == [(150000,)]
    assert "example.org" not in str(people.rows(people.target, "select email from app.many limit 5"))
