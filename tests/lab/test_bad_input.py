"""Tests of wrong input: each mistake gives one clear error with its place and the next step, and exit code 2."""

from __future__ import annotations

import psycopg
import pytest
from lab_help import TWO_ARMS


def arm(settings: str) -> str:
    return f'[[arm]]\nname = "base"\n[[arm]]\nname = "other"\nsettings = {{{settings}}}\n'


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ('wrok_mem = "8MB"', "work_mem"),
        ('work_mem = "lots"', "work_mem"),
        ('shared_buffers = "256MB"', "restart"),
        ('wal_writer_delay = "10ms"', "alter_system = true"),
        ('block_size = "4096"', "fixed"),
        ('"work_mem\'; drop table x; --" = 1', "no such setting"),
    ],
)
def test_a_setting_that_cannot_be_varied(lab, settings, says):
    for command in (("run",), ("plan", "check")):
        done = lab(*command, lab.plan(arm(settings)), code=2)
        assert says in done.stderr
        assert "next:" in done.stderr
    assert not (lab.folder / "runs").exists(), "nothing was begun"


def test_a_script_that_does_not_parse_names_line_and_column(lab):
    done = lab("run", lab.plan(TWO_ARMS, script="\\set x random(1,\nselect 1;"), code=2)
    assert "s:1:" in done.stderr


def test_a_script_that_never_succeeds_ends_after_the_warm_up(lab):
    done = lab("run", lab.plan(TWO_ARMS, script="select * from no_such_table;"), code=2)
    assert "no_such_table" in done.stderr
    assert "next: run the script manually" in done.stderr


def test_a_script_without_sql(lab):
    for text, says in (("-- nothing", "no command"), ("\\sleep 1 ms", "no SQL")):
        assert says in lab("run", lab.plan(TWO_ARMS, script=text), code=2).stderr


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://127.0.0.1:1/nowhere",
        "host=/nonexistent dbname=x",
        "postgresql://[",
        "nonsense",
    ],
)
def test_a_dsn_that_does_not_answer(lab, dsn):
    done = lab("run", lab.plan(TWO_ARMS), "--target", dsn, code=2)
    assert "next:" in done.stderr


def test_a_wrong_password_is_not_shown(lab, server):
    parameters = {**server.tcp_conninfo(), "password": "wrong horse"}
    dsn = psycopg.conninfo.make_conninfo("", **parameters)
    done = lab("run", lab.plan(TWO_ARMS), "--target", dsn, code=2)
    assert "wrong horse" not in done.stderr + done.stdout
    assert "password authentication failed" in done.stderr


def test_too_many_sessions_for_the_server(lab):
    plan = lab.plan(TWO_ARMS)
    path = lab.folder / plan
    path.write_text(path.read_text().replace("sessions = 2", "sessions = 5000"))
    assert "free" in lab("run", plan, code=2).stderr


def test_a_role_that_lacks_rights(lab, server, dsn):
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create role poor login password 'pw'")
        parameters = {**server.tcp_conninfo(), "user": "poor", "password": "pw"}
        plain = psycopg.conninfo.make_conninfo("", **parameters)
        done = lab("run", lab.plan(arm("fsync = false"), more=""), "--target", plain, code=2)
        assert "next:" in done.stderr
        assert (
            "may not"
            in lab("run", lab.plan(arm('log_min_duration_statement = "1s"')), "--target", plain, code=2).stderr
        )
        lab("run", lab.plan(TWO_ARMS), "--target", plain)
        assert "pg_monitor" in lab("doctor", "--target", plain).stdout
        conn.execute("drop owned by poor")
        conn.execute("drop role poor")


def test_a_torn_part_is_left_out_and_said(lab_with_run):
    run = next((lab_with_run.folder / "runs").iterdir())
    part = run / "calls" / "b000002.parquet"
    part.write_bytes(part.read_bytes()[:-100])
    done = lab_with_run("compare", "last")
    assert "b000002.parquet" in done.stdout
    assert "left out" in lab_with_run("sql", "select count(*) from calls", code=2).stderr


def test_a_manifest_that_is_torn(lab_with_run):
    run = next((lab_with_run.folder / "runs").iterdir())
    (run / "manifest.json").write_text('{"schema": 1, "tit')
    done = lab_with_run("compare", str(run), code=2)
    assert "manifest.json" in done.stderr


def test_a_full_disk_loses_nothing_of_what_was_recorded(lab, small_disk):
    out = str(small_disk)
    (small_disk / "taken").write_bytes(bytes(1_750_000))  # it is full sooner
    plan = lab.plan(TWO_ARMS, blocks=5000, script="select 1;")
    done = lab("run", plan, "--out", out, code=2)
    assert "No space left" in done.stderr
    assert "resume" in done.stderr
    model = lab("compare", "last", "--runs", out, "--format", "json").stdout
    assert '"kind": "experiment"' in model


@pytest.mark.parametrize(
    "words",
    [
        ("rnu",),
        ("run", "redo-siez"),
        ("studies", "redosize"),
        ("sql",),
        ("compare", "none"),
        ("run",),
        ("report", "none"),
    ],
)
def test_words_that_are_not_known(lab, words):
    done = lab(*words, code=2)
    assert done.stderr.strip()


def test_sql_on_evidence_may_read_nothing_else(lab_with_run):
    for text in (
        "select * from read_text('/etc/passwd')",
        "copy calls to '/tmp/x.csv'",
        "attach '/tmp/x.db'",
        "selec 1",
    ):
        assert lab_with_run("sql", text, code=2).stderr.startswith("dbdyno: ")
