"""Tests of publishing: the table is created on request, indexes are created at the end, and rounded values are
reported."""

from __future__ import annotations

import re

from move_lab import Lab
from test_move_in import content, into, nothing_left
from test_move_types import NATIVE, WORDS, filled

from command_line import checked

INDEXES = "select indexrelid::regclass::text, pg_get_indexdef(indexrelid) from pg_index where indrelid = 'u'::regclass"
CONSTRAINTS = "select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'u'::regclass order by 1"


def test_a_table_is_made_with_the_types_that_the_files_note(lab: Lab) -> None:
    filled(lab, {**NATIVE, **WORDS}, 20)
    lab.moved("--table", "t")
    done = checked(into(lab, "--table", 'public."New; Table"', "--create", "--verify", "target"))
    assert "the table made, 20 rows added" in done.stdout
    assert "the table, read before the commit, contains exactly what was sent" in done.stdout
    assert content(lab, '"New; Table"') == content(lab, "t")
    types = (
        "select attname, format_type(atttypid, atttypmod) from pg_attribute a"
        " where attnum > 0 and attrelid = '{}'::regclass"
    )
    assert lab.rows(types.format('"New; Table"')) == lab.rows(types.format("t"))
    again = into(lab, "--table", 'public."New; Table"', "--create")
    assert (again.returncode, "already exists" in again.stderr) == (2, True)
    lab.run('drop table "New; Table", t', "drop type mood")
    gone = into(lab, "--table", "v", "--create")
    assert (gone.returncode, "the target has no type 'mood'" in gone.stderr) == (2, True)
    assert nothing_left(lab)


ROUNDED = (
    ("1.25::numeric(8,2)", "numeric(6,1)", "1.25 -> 1.3"),
    ("1.25::numeric(8,2)", "int", "1.25 -> 1"),
    ("0.1::float8", "real", "0.1 -> 0.10000000149011612"),
    ("'2026-01-02 03:04:05.678'::timestamp", "timestamp(0)", "03:04:05.678 -> 2026-01-02 03:04:06"),
    ("'2026-01-02 03:04'::timestamp", "date", "2026-01-02 03:04:00 -> 2026-01-02 00:00:00"),
    ("'NaN'::numeric", "numeric(5,1)", None),
    ("1.10::numeric(8,2)", "numeric(9,4)", None),
    ("7::smallint", "bigint", None),
    ("'ab  '::text", "varchar(3)", "ab   -> ab "),
    ("'ab'::char(3)", "char(5)", None),
    ("1.26::numeric", "numeric(5,1)", "1.26 -> 1.3"),
    ("'1 day 00:00:01.5'::interval", "interval(0)", "1 day 00:00:01.5 -> 1 day 00:00:02"),
    ("'10.0.0.1'::inet", "inet", None),
)
"""Value, type of the target column, and the reported rounding."""


def test_values_that_a_column_rounds_are_told(lab: Lab) -> None:
    came = ", ".join(f"{value} as c{place}" for place, (value, _, _) in enumerate(ROUNDED))
    kinds = ", ".join(f"c{place} {kind}" for place, (_, kind, _) in enumerate(ROUNDED))
    lab.run(f"create table t as select {came}", f"create table u ({kinds})")
    lab.moved("--table", "t")
    done = into(lab, "--table", "u")
    told = dict(re.findall(r"NOT the same: column (\w+) .*?: (.* -> .*)\.", done.stdout))
    wanted = {f"c{place}": said for place, (_, _, said) in enumerate(ROUNDED) if said is not None}
    assert told.keys() == wanted.keys()
    assert all(wanted[name] in told[name] for name in wanted), told
    assert (done.returncode, "1 row added" in done.stdout) == (1, True)
    compared = into(lab, "--table", "u", "--verify", "target")
    assert (compared.returncode, "the table was not changed" in compared.stderr) == (2, True)
    assert lab.rows("select count(*) from u") == [(1,)]
    same = ",".join(f"c{place}" for place, (_, _, said) in enumerate(ROUNDED) if said is None)
    lab.out = lab.folder / "same"
    lab.moved("--table", "t", "--columns", same)
    checked(into(lab, "--table", "u", "--verify", "target"))


def test_a_trigger_that_alters_rows_is_found_by_verify_target(lab: Lab) -> None:
    lab.run(
        "create table t as select g id, 'x' as note from generate_series(1, 50) g",
        "create table u (id int primary key, note text)",
        "insert into u select g, 'old' from generate_series(51, 90) g",
        "create function alter_it() returns trigger language plpgsql as"
        " $$ begin if new.id = 7 then new.note := 'other'; end if; return new; end $$",
    )
    lab.moved("--table", "t")
    assert into(lab, "--table", "u", "--verify", "target").returncode == 0, "older rows are none of ours"
    lab.run("delete from u", "create trigger alters before insert on u for each row execute function alter_it()")
    for words in ((), ("--mode", "merge", "--key", "id"), ("--mode", "replace")):
        done = into(lab, "--table", "u", "--verify", "target", *words)
        assert (done.returncode, "a trigger or a narrower type" in done.stderr) == (2, True), words
    assert lab.rows("select count(*) from u") == [(0,)]


def test_deferred_indexes_are_back_as_they_were(lab: Lab) -> None:
    lab.run(
        "create table t as select g id, md5(g::text) as note, g % 5 as kind from generate_series(1, 500) g",
        "create table kinds (kind int primary key)",
        "insert into kinds select generate_series(0, 4)",
        "create table u (id int primary key, note text unique deferrable, kind int references kinds)",
        "create index u_lower on u (lower(note)) where id > 3",
        "comment on index u_lower is 'it''s mine'",
        "create unique index u_ri on u (id)",
        "alter table u replica identity using index u_ri",
    )
    before = lab.rows(INDEXES), lab.rows(CONSTRAINTS)
    lab.moved("--table", "t")
    done = checked(into(lab, "--table", "u", "--defer-indexes"))
    assert "Made again at the end: u_lower, u_pkey, u_note_key, u_kind_fkey" in done.stdout
    assert "Left in place: u_ri: it is the replica identity" in done.stdout
    assert (sorted(lab.rows(INDEXES)), lab.rows(CONSTRAINTS)) == (sorted(before[0]), before[1])
    assert lab.rows("select obj_description('u_lower'::regclass)") == [("it's mine",)]
    lab.run("create table child (id int references u)")
    twice = into(lab, "--table", "u", "--defer-indexes")
    assert (twice.returncode, lab.rows("select count(*) from u")) == (2, [(500,)])
    assert (sorted(lab.rows(INDEXES)), lab.rows(CONSTRAINTS)) == (sorted(before[0]), before[1])
    lab.run("delete from u")
    kept = into(lab, "--table", "u", "--defer-indexes")
    assert "another object depends on it" in kept.stdout
