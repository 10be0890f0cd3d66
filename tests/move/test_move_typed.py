"""Tests of messages: commands with mistakes, and dry runs."""

from __future__ import annotations

from pathlib import Path

from move_lab import Lab
from test_move_in import into, nothing_left

from command_line import checked, dbdyno, succeeded
from dbdyno.move.ledger.folder import Ledger


def test_a_folder_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    """Regression: a missing folder was taken for a server ("name a new folder for the job's ledger: --job")."""
    done = dbdyno("move", tmp_path / "nothing", "--to", "postgresql://me@127.0.0.1:1/db", "--table", "t")
    assert done.returncode == 2
    assert "nothing: does not exist, and is not a connection string" in done.stderr


def test_the_usage_names_the_source_once() -> None:
    """Regression: the usage was "dbdyno move SOURCE [OPTIONS] SOURCE"."""
    said = dbdyno("move", "postgresql://me@127.0.0.1:1/db", "x", "--workers", "0").stderr
    assert "move SOURCE TARGET [OPTIONS]\n" in said, said


def test_a_dry_run_of_a_load_shows_its_way_and_writes_nothing(lab: Lab) -> None:
    lab.run(
        "create table t as select g as id, '::1'::inet as a from generate_series(1, 9) g",
        "create table u (id bigint, a inet)",
        "create view v as select id from u",
    )
    lab.moved("--table", "t")
    done = checked(into(lab, "--table", "u", "--mode", "replace", "--dry-run"))
    assert "public.u: replace of 1 file, 9 rows, 0.0 MB; staged, then added in one transaction" in done.stdout
    assert "  a: text -> inet, read from its text" in done.stdout
    again = into(lab, "--table", "w", "--create", "--dry-run")
    assert "public.w: insert of 1 file, 9 rows, 0.0 MB; staged, then added in one transaction" in again.stdout
    across = ("--to", lab.dsn, "--into", "u", "--mode", "replace", "--dry-run")
    seen = succeeded("move", lab.dsn, "--table", "t", *across)
    assert "public.t: table" in seen.stdout
    assert "into public.u of " in seen.stdout
    assert "  a: inet -> inet\n" in seen.stdout
    assert lab.rows("select count(*) from u") == [(0,)]
    assert lab.rows("select to_regclass('w')") == [(None,)]
    assert nothing_left(lab)


def test_the_status_of_a_job_to_another_server_says_where_it_goes(lab: Lab) -> None:
    lab.run("create table t as select 1 as id", "create table u (id int)")
    job = lab.folder / "job"
    words = ("--to", lab.dsn, "--into", "u", "--job", job, "--mode", "replace")
    assert dbdyno("move", lab.dsn, "--table", "t", *words).returncode == 0
    said = dbdyno("move", "status", job).stdout
    assert "Target: u of host=" in said
    assert "file_bytes" not in said
    ledger = Ledger.open(job)
    ledger.manifest["status"] = "running"
    ledger.save()
    assert f"next: dbdyno move resume {job} --source DSN --target DSN." in dbdyno("move", "status", job).stdout
