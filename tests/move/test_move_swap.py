"""Tests of `replace` and `--create` with several workers: a new table takes the name, and differs only in its rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from move_lab import Lab
from test_move_in import content, into, nothing_left
from test_move_types import NATIVE, filled

from command_line import checked
from dbdyno.move.engines.postgres import swap

TWO = ("--table", "u", "--mode", "replace", "--workers", "2")
FACTS = (
    "select indexrelid::regclass::text, pg_get_indexdef(indexrelid) from pg_index where indrelid = 'u'::regclass"
    " order by 1",
    "select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'u'::regclass order by 1",
    "select attname, format_type(atttypid, atttypmod), attnotnull, attgenerated, attstorage,"
    " pg_get_expr(adbin, adrelid), col_description(attrelid, attnum)"
    " from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum"
    " where attrelid = 'u'::regclass and attnum > 0 and not attisdropped order by attnum",
    "select grantee, privilege_type, is_grantable from information_schema.table_privileges"
    " where table_name = 'u' order by 1, 2",
    "select obj_description('u'::regclass), obj_description('u_note'::regclass)",
)
OID = "select 'u'::regclass::oid::bigint"


@pytest.fixture
def made(lab: Lab) -> Lab:
    """Create files of 500 rows, and a table with every kind of dependent object."""
    lab.run(
        "create table t as select g id, md5(g::text) note from generate_series(1, 500) g",
        "create table u (gone int, id int primary key, note text not null default 'x' check (note <> ''),"
        " twice text generated always as (note || note) stored)",
        "alter table u drop column gone",
        "alter table u alter note set storage external",
        "create unique index u_note on u (lower(note)) where id > 0",
        "comment on table u is 'it''s mine'",
        "comment on index u_note is 'a note'",
        "comment on column u.note is 'text'",
        "grant select on u to public",
        "insert into u values (1, 'old')",
        "analyze u",
    )
    lab.moved("--table", "t", "--piece", "16KiB")
    return lab


def test_the_new_table_is_what_the_old_one_was_but_for_its_rows(made: Lab) -> None:
    before, oid = [made.rows(query) for query in FACTS], made.rows(OID)
    done = checked(into(made, *TWO, "--verify", "source"))
    assert "filling public.dbdyno_move_" in done.stderr
    assert "the table emptied and 500 rows added" in done.stdout
    assert "Made again at the end: u_note, u_pkey" in done.stdout
    assert [made.rows(query) for query in FACTS] == before
    assert made.rows(OID) != oid
    assert made.rows("select id, note from u order by 1") == made.rows("select * from t order by 1")
    assert made.rows("select count(*) > 0 from pg_stats where tablename = 'u'") == [(True,)]
    assert nothing_left(made)


@pytest.mark.parametrize(
    ("stands", "said"),
    [
        ("create view v as select id from u", "rule _RETURN on view v stands on it"),
        ("create table c (id int references u)", "constraint c_id_fkey on table c stands on it"),
        ("alter table u add column n serial", "sequence u_n_seq stands on it"),
        ("create function f(u) returns int language sql as 'select 1'", "function f(u) stands on it"),
        ("alter table u add column n int generated always as identity", "a column has privileges, an identity"),
        ("alter table u enable row level security", "row-level security"),
        ("alter table u set (fillfactor = 70)", "it has storage parameters"),
        ("alter table u cluster on u_pkey", "an index has settings of its own"),
        ("create table w () inherits (u)", "it has partitions or children"),
        ("create publication p for table u", "publication of table u in publication p stands on it"),
    ],
)
def test_a_table_that_others_stand_on_keeps_its_place(made: Lab, stands: str, said: str) -> None:
    made.run("set client_min_messages = error; " + stands)
    oid = made.rows(OID)
    done = into(made, *TWO)
    made.run("drop publication if exists p")
    assert said in done.stderr
    assert "staging, unlogged, into" in done.stderr
    assert made.rows(OID) == oid
    if "references" in stands:
        assert (done.returncode, made.rows("select note from u")) == (2, [("old",)])
    else:
        assert (done.returncode, made.rows("select count(*) from u")) == (0, [(500,)]), done.stderr


@contextlib.contextmanager
def older_snapshot(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection[Any]]:
    """Hold a snapshot from before the load, for which the load does not wait."""
    monkeypatch.setattr(swap, "SNAPSHOTS_S", 0)
    with contextlib.closing(lab.connect()) as other:
        other.execute("begin isolation level repeatable read")
        other.execute("select count(*) from t")
        yield other


def test_who_has_an_older_snapshot_never_sees_a_part(made: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    oid = made.rows(OID)
    with older_snapshot(made, monkeypatch) as other:
        done = checked(into(made, *TWO))
        assert "a session has a snapshot from before the rows arrived" in done.stderr
        row = other.execute("select count(*) from u").fetchone()
        assert row in ((0,), (1,)), "none of the new rows"
    assert made.rows(OID) == oid
    assert made.rows("select count(*) from u") == [(500,)]
    assert nothing_left(made)


def change_meanwhile(lab: Lab, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """Execute a statement when the rows have come and before the new table takes the name."""
    older = swap.has_older_snapshots
    monkeypatch.setattr(swap, "has_older_snapshots", lambda conn: lab.run(change) or older(conn))


def test_what_changes_while_rows_come_is_seen(made: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is checked again once no other session can alter it."""
    change_meanwhile(made, monkeypatch, "alter table u add column late int default 7")
    done = checked(into(made, *TWO))
    assert "its columns were altered during the load" in done.stderr
    assert made.rows("select count(*), min(late) from u") == [(500, 7)]


def test_a_row_that_a_key_refuses_changes_nothing(made: Lab) -> None:
    made.run("create table d as select g / 2 id, g::text note from generate_series(1, 9) g")
    made.out = made.folder / "double"
    made.moved("--table", "d")
    before = [made.rows(query) for query in FACTS], made.rows(OID)
    done = into(made, *TWO)
    assert done.returncode == 2
    assert "u_pkey" in done.stderr
    assert ([made.rows(query) for query in FACTS], made.rows(OID)) == before
    assert made.rows("select id, note from u") == [(1, "old")]
    assert nothing_left(made)


def test_a_table_that_is_made_is_filled_under_its_staging_name(lab: Lab) -> None:
    filled(lab, NATIVE, 300)
    lab.moved("--table", "t", "--piece", "16KiB")
    done = checked(into(lab, "--table", 'public."A; b"', "--create", "--workers", "2"))
    assert "filling public.dbdyno_move_" in done.stderr
    assert "the table made, 300 rows added" in done.stdout
    assert content(lab, '"A; b"') == content(lab, "t")
    again = into(lab, "--table", 'public."A; b"', "--create", "--workers", "2")
    assert (again.returncode, "already exists" in again.stderr) == (2, True)
    assert nothing_left(lab)
