"""`dbdyno snap` as a user types it."""

from __future__ import annotations

import json
import socket

import pytest
from click.testing import CliRunner
from psycopg.conninfo import make_conninfo
from snapshot_help import Lab, settle

import chromium
import drawn
from dbdyno.base.errors import Error
from dbdyno.bench.postgres.login import login_error
from dbdyno.cli.main import cli


def run(lab: Lab, *words: str):
    env = {"DBDYNO_SNAPS": str(lab.store.folder), "DBDYNO_TARGET": lab.dsn, "COLUMNS": "120"}
    done = CliRunner().invoke(cli, ["snap", *words], env=env)
    if isinstance(done.exception, Error):
        raise done.exception
    return done


@pytest.fixture
def two(lab: Lab) -> Lab:
    lab.run("create table told (id int)")
    settle()
    assert run(lab, "take", "--note", "before").output == "1\n"
    lab.run("insert into told values (1), (2)")
    settle()
    assert run(lab, "take", "--note", "after").output == "2\n"
    return lab


def test_take_list_and_report(two: Lab):
    listed = run(two, "list", "--format", "json")
    assert [row["note"] for row in json.loads(listed.output)] == ["before", "after"]
    text = run(two, "report", "before", "after").output
    headings = ("DATABASE THROUGHPUT", "MOST ACCESSED TABLES", "LOAD PROFILE", "TOP SQL", "COST OF")
    place = [text.index(heading) for heading in headings]
    assert place == sorted(place)
    assert "database  " in text and "rows_ps" in text and "tuples_pct" in text
    assert "not measured: waits" in text
    assert run(two, "report", "last").output.splitlines()[2] == text.splitlines()[2]


@pytest.mark.soak
def test_every_form_holds_the_same_numbers(two: Lab, tmp_path, request):
    model = json.loads(run(two, "report", "1", "2", "--format", "json").output)
    assert model["kind"] == "snapshot"
    csv = run(two, "report", "1", "2", "--format", "csv").output
    assert csv.startswith("section,table,row,column,value,unit,verdict\n")
    assert "tables,Scans and changes,told,inserted,2,count,ok" in csv
    page = tmp_path / "r.html"
    assert run(two, "report", "1", "2", "-o", str(page)).exit_code == 0
    assert "Most accessed tables" in page.read_text()
    if chromium.find() is not None:
        assert drawn.faults(request.getfixturevalue("browser"), page) == []
    narrow = CliRunner().invoke(
        cli,
        ["snap", "report", "1", "2"],
        env={"DBDYNO_SNAPS": str(two.store.folder), "COLUMNS": "60"},
    )
    assert max(map(len, narrow.output.splitlines())) <= 60


def test_watch_prints_numbers_and_compare_and_baseline_use_them(lab: Lab):
    done = run(lab, "watch", "--every", "1s", "--for", "7s", "--sample", "100ms")
    numbers = done.output.split()
    assert done.exit_code == 0
    assert len(numbers) >= 5
    assert run(lab, "baseline", "calm", f"1..{numbers[-1]}").exit_code == 0
    assert "calm" in run(lab, "baseline").output
    env = {"DBDYNO_SNAPS": str(lab.store.folder), "COLUMNS": "140"}
    compared = CliRunner().invoke(cli, ["compare", "snap:calm", f"snap:1..{numbers[-1]}"], env=env)
    assert "METRICS" in compared.output
    assert compared.exit_code == 0


def test_errors_say_what_to_do(two: Lab):
    with pytest.raises(Error, match="does not match a snapshot"):
        run(two, "report", "1", "99")
    dead = make_conninfo("", host="127.0.0.1", port="1", connect_timeout="2")
    with pytest.raises(Error, match=r"cannot connect: .*Connection refused") as told:
        run(two, "take", "--target", dead)
    assert "host and port are right" in str(told.value), "a server that is not there wants no password"
    assert run(two, "report", "1").exit_code == 2


def test_a_server_that_takes_the_connection_and_is_silent_wants_no_password(tmp_path):
    """Under a lock on pg_class logins wait; the advice was to give the password."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dsn = f"host=127.0.0.1 port={silent.getsockname()[1]} user=u dbname=d connect_timeout=2 sslmode=disable"
        done = CliRunner().invoke(cli, ["snap", "take", "--target", dsn, "--store", str(tmp_path / "s")])
    assert isinstance(done.exception, Error)
    assert "lock on a system catalog" in str(done.exception.next_step)
    assert "password" not in str(done.exception.next_step)


def test_a_password_of_one_letter_takes_no_letter_out_of_what_the_server_says():
    """ "canceling state...ent due to lock ti...eout" was no lock timeout: the advice was to give the password."""
    said = Exception("connection failed: FATAL:  canceling statement due to lock timeout, for m")
    error = login_error(said, "db1", ["m"])
    assert error.message == "cannot log in: FATAL:  canceling statement due to lock timeout, for ..."
    assert "lock on a system catalog" in str(error.next_step)
    longer = login_error(Exception('FATAL: no user "xgeheimx"'), "db1", ["geheim"])
    assert "geheim" not in longer.message
