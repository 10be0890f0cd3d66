"""Tests of loads: a load is complete or changes nothing, and exported rows come back unchanged."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from move_lab import Lab, started
from test_move_types import NATIVE, WORDS, filled

from command_line import checked, dbdyno
from dbdyno.base.errors import MoveError
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres.merging import MergeCounts
from dbdyno.move.loading import load as inward
from dbdyno.move.loading import methods as loading
from dbdyno.move.loading.request import LoadRequest, LoadResult
from dbdyno.move.reading.run import JobOptions
from fresh_dice import fresh_dice


def into(lab: Lab, *words: object) -> subprocess.CompletedProcess[str]:
    """Load the files of `out` into a table."""
    return dbdyno("move", lab.out, "--to", lab.dsn, *words)


def content(lab: Lab, table: str) -> list[tuple[str]]:
    """Return all rows as text from the server."""
    return lab.rows(f"select t::text from {table} t order by id")


def nothing_left(lab: Lab) -> bool:
    """Return True if no staging table is left."""
    return lab.rows("select count(*) from pg_class where relname like 'dbdyno_move_%'") == [(0,)]


def arrived(lab: Lab, table: str, done: subprocess.CompletedProcess[str], *said: str) -> None:
    """Check that a command moved the 40 rows of all types into a table unchanged, and what it said."""
    assert done.returncode == 0, done.stderr
    assert not [words for words in ("40 rows added", *said) if words not in done.stdout], done.stdout
    assert content(lab, table) == content(lab, "t")
    assert nothing_left(lab)


def goes_back(lab: Lab, load: Callable[..., subprocess.CompletedProcess[str]], proof: str) -> None:
    """Export a table of all types, load it again with `load`, and check that it is unchanged."""
    filled(lab, {**NATIVE, **WORDS}, 40)
    lab.run("update t set n = 'NaN', d = 'infinity', ts = '-infinity' where id = 7", "create table back (like t)")
    lab.moved("--table", "t", "--piece", "16KiB")
    done = load(lab, "--table", "back", "--verify", proof)
    held = "the files contain what the job that wrote them had read"
    arrived(lab, "back", done, held, "the staged rows, read again from the server, were those of the files")


def test_what_came_out_goes_back_as_it_was(lab: Lab) -> None:
    goes_back(lab, into, "source")


def test_replace_insert_update_and_merge_count_what_they_do(lab: Lab) -> None:
    lab.run(
        "create table t (id int, x numeric(8,2), j json)",
        "insert into t select g, g, '{}' from generate_series(1, 100) g",
        "insert into t values (null, 1, null)",
        "create table u (id int primary key, x numeric(8,2), j json, own text default 'kept')",
    )
    lab.moved("--table", "t", "--where", "id is not null")
    assert "100 rows added" in into(lab, "--table", "u").stdout
    twice = into(lab, "--table", "u")
    assert (twice.returncode, "duplicate key" in twice.stderr) == (2, True)
    assert "use --mode merge or --mode update with --key" in twice.stderr, "it was told to try the SQL in psql"
    assert "emptied and 100 rows added" in into(lab, "--table", "u", "--mode", "replace").stdout
    lab.run("update u set x = 0, own = 'mine' where id <= 10", "delete from u where id > 95")
    lab.out = lab.folder / "all"
    lab.moved("--table", "t")
    updated = into(lab, "--table", "u", "--mode", "update", "--key", "id")
    assert "10 rows changed, 85 the same, 5 missing and left out, 1 without a key left out" in updated.stdout
    assert lab.rows("select count(*) from u where own = 'mine'") == [(10,)]
    merged = into(lab, "--table", "u", "--mode", "merge", "--key", "id")
    assert "5 rows added, 0 changed, 95 the same, 1 without a key left out" in merged.stdout
    assert lab.rows("select count(*), sum(x) from u") == [(100, 5050)]
    lab.run("insert into t values (1, 5, null)")
    lab.out = lab.folder / "doubled"
    lab.moved("--table", "t")
    doubled = into(lab, "--table", "u", "--mode", "merge", "--key", "id")
    assert (doubled.returncode, "1 key is in the files more than once" in doubled.stderr) == (2, True)
    assert nothing_left(lab)


@pytest.mark.parametrize(
    ("table", "words", "said"),
    [
        ("u (id int, x int)", (), "has no column 'note'"),
        ("u (id smallint, x text, note text)", (), "smallint out of range"),
        ("u (id int, x text, note varchar(3))", (), "value too long"),
        ("u (id int, x text, note inet)", (), "invalid input syntax for type inet"),
        ("u (id int check (id < 50), x text, note text)", (), "check constraint"),
        ("u (id int, x text, note text)", ("--mode", "merge"), "need a --key"),
        ("u (id int, x text, note text)", ("--mode", "merge", "--key", "nope"), "no column 'nope'"),
        ("u (id int, x text, note text)", ("--where", "true"), "works only if SOURCE is"),
    ],
)
def test_what_cannot_go_in_changes_nothing(lab: Lab, table: str, words: tuple[str, ...], said: str) -> None:
    lab.run(
        "create table t as select g + 40000 id, g::text x, 'long note' note from generate_series(1, 100) g",
        f"create table {table}",
        "insert into u (id) values (1)",
    )
    lab.moved("--table", "t")
    done = into(lab, "--table", "u", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert lab.rows("select count(*) from u") == [(1,)]
    assert nothing_left(lab)


def test_generated_and_identity_columns(lab: Lab) -> None:
    made = "(id int generated always as identity, x int, twice int generated always as (x * 2) stored)"
    lab.run(f"create table t {made}", "insert into t (x) values (5), (6)", f"create table u {made}")
    lab.moved("--table", "t")
    assert into(lab, "--table", "u").returncode == 0
    assert content(lab, "u") == content(lab, "t") == [("(1,5,10)",), ("(2,6,12)",)]


def test_files_of_others_go_in_where_their_types_are_known(lab: Lab) -> None:
    lab.write("select range::int as id, 'a' || range as x, (range / 4)::decimal(6,2) as n from range(50)")
    lab.run("create table u (id int, x text, n numeric(6,2))")
    assert into(lab, "--table", "u").returncode == 0, into(lab, "--table", "u").stderr
    assert lab.rows("select count(*), sum(id), sum(n) from u") == [(50, 1225, 306.25)]
    lab.write("select [1, 2] as id")
    refused = into(lab, "--table", "u")
    assert (refused.returncode, "which cannot be loaded" in refused.stderr) == (2, True)
    (lab.out / "a.parquet").write_bytes(b"PAR1 no more")
    broken = into(lab, "--table", "u")
    assert (broken.returncode, "a.parquet" in broken.stderr) == (2, True)


def test_files_that_are_not_what_their_job_wrote_stay_out(lab: Lab) -> None:
    lab.run("create table t as select g id from generate_series(1, 9000) g", "create table u (id int)")
    lab.moved("--table", "t", "--piece", "64KiB")
    first, second = sorted(lab.out.glob("part*"))[:2]
    shutil.copy(second, first)
    altered = into(lab, "--table", "u")
    assert (altered.returncode, "does not contain the rows that its job wrote" in altered.stderr) == (2, True)
    first.unlink()
    missing = into(lab, "--table", "u")
    assert (missing.returncode, "part-00000.parquet: is missing" in missing.stderr) == (2, True)
    assert lab.rows("select count(*) from u") == [(0,)]


def test_a_kill_on_the_way_in_leaves_all_or_nothing(lab: Lab) -> None:
    rng = fresh_dice()
    lab.run("create table t as select g id, md5(g::text) x from generate_series(1, 20000) g", "create table u (like t)")
    lab.moved("--table", "t", "--piece", "64KiB")
    for _ in range(2):
        process = started(lab.out, "--to", lab.dsn, "--table", "u", "--mode", "replace")
        while process.is_alive() and nothing_left(lab):
            time.sleep(0.002)
        process.join(rng.random() * 0.05)
        process.kill()
        process.join()
        assert lab.rows("select count(*), count(distinct x) from u") in ([(0, 0)], [(20000, 20000)])
    assert into(lab, "--table", "u", "--mode", "replace").returncode == 0
    assert content(lab, "u") == content(lab, "t")


def loaded(lab: Lab) -> LoadResult:
    """Load the files of `out` into the table u, in this process."""
    return inward.load_files(Postgres.open(lab.dsn), lab.out, LoadRequest("u"), JobOptions(workers=2))


def test_who_is_cut_off_while_rows_are_published_is_told_that_nobody_knows(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the error advised "correct it; try the SQL in psql", and an interruption reported nothing."""
    lab.run("create table t as select g as id from generate_series(1, 9) g", "create table u (like t)")
    lab.moved("--table", "t")

    def ended(conn: psycopg.Connection[Any], *_: object, **__: object) -> MergeCounts:
        conn.execute("select pg_terminate_backend(pg_backend_pid())")
        raise AssertionError

    def interrupted(*_: object, **__: object) -> MergeCounts:
        raise KeyboardInterrupt

    monkeypatch.setattr(loading, "publish", ended)
    with pytest.raises(MoveError, match="either all of them are in the table, or none") as told:
        loaded(lab)
    assert "count the rows of the table" in str(told.value)
    monkeypatch.setattr(loading, "publish", interrupted)
    with pytest.raises(KeyboardInterrupt, match="either all of them are in the table, or none: count the rows"):
        loaded(lab)
    monkeypatch.setattr(loading, "fill", interrupted)
    with pytest.raises(KeyboardInterrupt, match="nothing of u was changed"):
        loaded(lab)
    assert lab.rows("select count(*) from u") == [(0,)]


def test_one_worker_goes_straight_into_the_table_or_nowhere(lab: Lab) -> None:
    """An altered file is found before the commit; rows of a type that rounds are staged, so that rounding can be
    reported."""
    filled(lab, NATIVE, 300)
    lab.run("create table u (like t)", "create table narrow (id int, x varchar(3))", "create index on u (id)")
    lab.moved("--table", "t", "--piece", "16KiB")
    one = ("--table", "u", "--mode", "replace", "--workers", "1")
    done = checked(into(lab, *one, "--defer-indexes"))
    assert "directly into the table, in one transaction; rows are logged" in done.stderr
    assert "Made again at the end: " in done.stdout
    assert content(lab, "u") == content(lab, "t")
    first, second = sorted(lab.out.glob("part*"))[:2]
    shutil.copy(second, first)
    lab.run("delete from u where id > 7")
    refused = into(lab, *one)
    assert (refused.returncode, "does not contain the rows that its job wrote" in refused.stderr) == (2, True)
    assert lab.rows("select count(*) from u") == lab.rows("select count(*) from t where id <= 7")
    lab.out = lab.folder / "words"
    lab.run("create table wide (id int, x varchar(9))", "insert into wide values (1, 'abc   ')")
    lab.moved("--table", "wide")
    cut = into(lab, "--table", "narrow", "--workers", "1")
    assert (cut.returncode, "staging, unlogged, into" in cut.stderr, "NOT the same: column x" in cut.stdout) == (
        1,
        True,
        True,
    )


@pytest.mark.soak
def test_rows_are_not_logged_where_wal_level_is_minimal_and_the_table_is_new(tmp_path: Path) -> None:
    settings = {"wal_level": "minimal", "max_wal_senders": "0", "autovacuum": False, "wal_skip_threshold": "64kB"}
    with EmbeddedPostgres(settings=settings) as engine, Lab(engine, tmp_path) as lab:
        lab.run(
            "create table t as select g id, md5(g::text) x from generate_series(1, 50000) g", "create table u (like t)"
        )
        lab.moved("--table", "t")
        for words, said, least, most in (
            (("--mode", "replace"), "not logged, because wal_level is minimal", 0, 300_000),
            (("--mode", "insert"), "rows are logged", 1_000_000, 30_000_000),
        ):
            before = lab.rows("select pg_current_wal_insert_lsn()")[0][0]
            done = into(lab, "--table", "u", "--workers", "1", *words)
            assert (done.returncode, said in done.stderr) == (0, True), done.stderr
            assert least < lab.rows(f"select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '{before}')")[0][0] < most
