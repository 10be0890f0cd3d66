"""Tests of moves of several tables from server to server: one transaction for all, in any order of references."""

from __future__ import annotations

import json
import subprocess

import pytest
from move_lab import Lab
from test_move_in import content, nothing_left

from command_line import checked, dbdyno, succeeded
from dbdyno.move.ledger.summary import job_summary
from dbdyno.page import Page
from dbdyno.pages import page_of

TABLES = (
    "drop schema if exists sales cascade",
    "drop schema if exists archive cascade",
    "create schema sales",
    "create schema archive",
    # By name the child comes first: its foreign key does not.
    "create table sales.a_lines (id int primary key, item int, x text)",
    'create table sales."Z items" (id int primary key, parent int)',
    'insert into sales."Z items" select g, nullif(g / 2, 0) from generate_series(1, 300) g',
    "insert into sales.a_lines select g, g % 300 + 1, md5(g::text) from generate_series(1, 2000) g",
    "create table archive.a_lines (like sales.a_lines including all)",
    'create table archive."Z items" (like sales."Z items" including all)',
    'alter table archive.a_lines add foreign key (item) references archive."Z items"',
    'alter table archive."Z items" add foreign key (parent) references archive."Z items"',
)
NAMES = ("a_lines", '"Z items"')


def several(lab: Lab, *words: object, job: str = "job") -> subprocess.CompletedProcess[str]:
    """Move all tables of a schema to the same server."""
    given = ("--tables", "sales.*", "--to", lab.dsn, "--job", lab.folder / job)
    return dbdyno("move", lab.dsn, *given, *words)


def test_tables_with_foreign_keys_arrive_in_one_transaction(lab: Lab) -> None:
    lab.run(*TABLES)
    plan = checked(several(lab, "--into", "archive.*", "--dry-run"))
    assert "into archive.Z items of" in plan.stdout
    assert "into archive.a_lines of" in plan.stdout
    for turn in ("first", "second"):
        done = several(
            lab, "--into", "archive.*", "--mode", "replace", "--piece", "16KiB", "--verify", "target", job=turn
        )
        assert done.returncode == 0, done.stderr
        assert "archive.a_lines: the table emptied and 2,000 rows added; in one transaction." in done.stdout
        assert "2 tables in one transaction." in done.stdout
        assert "Proved: 2,300 rows in " in done.stdout
        assert all(content(lab, f"archive.{name}") == content(lab, f"sales.{name}") for name in NAMES)
    assert nothing_left(lab)
    page: Page = page_of(job_summary(lab.folder / "second"))
    assert (page.head.title, page.head.word) == ("2 tables", "Complete")
    tables = next(one for one in page.sections if one.name == "tables").tables[0]
    assert [(row.cells["table"], row.cells["rows"]) for row in tables.rows] == [
        ("sales.Z items", 300),
        ("sales.a_lines", 2000),
    ]


def test_each_of_several_tables_has_its_own_changes(lab: Lab) -> None:
    """Regression: the changes of the first table were still there when the second one was published in the same
    transaction."""
    lab.run(*TABLES)
    checked(several(lab, "--into", "archive.*", job="first"))
    lab.run("update sales.a_lines set x = 'new' where id < 11", "delete from archive.a_lines where id = 2000")
    for mode, added in (("merge", 1), ("update", 0)):
        done = checked(several(lab, "--into", "archive.*", "--mode", mode, "--key", "id", job=mode))
        assert (f"{added} row added" in done.stdout) == bool(added), done.stdout
        assert all(content(lab, f"archive.{name}") == content(lab, f"sales.{name}") for name in NAMES)
    assert nothing_left(lab)


def test_one_that_does_not_fit_leaves_all_of_them_as_they_were(lab: Lab) -> None:
    lab.run(*TABLES, "alter table archive.a_lines add check (id < 2000)", "insert into archive.a_lines values (1)")
    refused = several(lab, "--into", "archive.*", "--mode", "replace")
    assert (refused.returncode, "check constraint" in refused.stderr) == (2, True), refused.stderr
    assert lab.rows('select (select count(*) from archive.a_lines), (select count(*) from archive."Z items")') == [
        (1, 0)
    ]
    # The rows still stand staged: once the table takes them, the job goes on.
    lab.run("alter table archive.a_lines drop constraint a_lines_id_check")
    succeeded("move", "resume", lab.folder / "job", "--source", lab.dsn, "--to", lab.dsn)
    assert all(content(lab, f"archive.{name}") == content(lab, f"sales.{name}") for name in NAMES)
    assert nothing_left(lab)


def test_tables_are_made_under_their_own_names_or_refused_where_two_are_one(lab: Lab) -> None:
    lab.run(*TABLES, "drop schema archive cascade", "create schema archive", "create table public.a_lines (id int)")
    checked(several(lab, "--into", "archive.*", "--create"))
    assert all(content(lab, f"archive.{name}") == content(lab, f"sales.{name}") for name in NAMES)
    words = ("--tables", "*.a_lines", "--to", lab.dsn, "--job", lab.folder / "two")
    twice = dbdyno("move", lab.dsn, *words, "--into", "archive.*")
    assert (twice.returncode, "two source tables would be loaded into this table" in twice.stderr) == (2, True), (
        twice.stderr
    )
    one = dbdyno("move", lab.dsn, *words, "--into", "archive.a_lines")
    assert (one.returncode, "3 tables cannot be moved into one" in one.stderr) == (2, True), one.stderr
    assert not (lab.folder / "two").exists()


def test_bad_rows_of_all_tables_go_into_one_file(lab: Lab) -> None:
    lab.run(
        *TABLES,
        "alter table archive.a_lines add check (id <> 7)",
        'alter table archive."Z items" add check (id <> 300)',
    )
    bad = lab.folder / "bad.jsonl"
    few = several(lab, "--into", "archive.*", "--rejects", bad, "--max-rejects", "2", job="few")
    # Whoever names a row that was rejected is rejected, too.
    assert (few.returncode, "more than 2 rows cannot be loaded" in few.stderr) == (2, True), few.stderr
    assert lab.rows("select count(*) from archive.a_lines") == [(0,)]
    done = several(lab, "--into", "archive.*", "--rejects", bad)
    assert done.returncode == 1, done.stderr
    told = [json.loads(line) for line in bad.read_text().splitlines()]
    missing = sum(1 for id in range(1, 2001) if id % 300 + 1 == 300)
    assert len(told) == 1 + 1 + missing
    assert lab.rows('select (select count(*) from archive.a_lines), (select count(*) from archive."Z items")') == [
        (2000 - 1 - missing, 299)
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--into", "archive.*", "--mode", "replace-partitions"), "works on one table at a time"),
        (("--into", "nowhere.*"), "there is no such table"),
        (("--into", "nowhere.*", "--create"), 'schema "nowhere" does not exist'),
        (("--where", "id > 1"), "--where and --columns work with one table"),
    ],
)
def test_what_cannot_go_together_begins_nothing(lab: Lab, words: tuple[str, ...], said: str) -> None:
    lab.run(*TABLES)
    done = several(lab, *words)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not (lab.folder / "job").exists()
