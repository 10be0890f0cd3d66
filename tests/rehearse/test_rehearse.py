"""`dbdyno rehearse` as users see it: both kinds of new side and of load, refused requests, and what remains."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from rehearsal_help import CUSTOMERS, SMALL, capture, database, model_in, model_of, shop

from command_line import dbdyno
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.rehearse.catalog import Catalog
from dbdyno.rehearse.effects import OutsideEffects, reason_left_out
from dbdyno.rehearse.order import undetermined_reason
from dbdyno.rehearse.settings import differing_settings
from dbdyno.trace.proxy.proxy_run import ProxyOptions, run_proxy
from server_binaries import binaries_of
from waiting import until

FEW = pytest.mark.usefixtures("few_blocks")

SUMS = """select (select sum(hashtext(o::text)) from orders o), (select sum(hashtext(c::text)) from customers c),
  (select count(*) from pg_database where datname like 'dbdyno%')"""


OWN_SCHEMA = (
    'create schema "My App"',
    'alter table customers set schema "My App"',
    'alter database old set search_path = "My App", public',
)
"""A table that sessions find only by a setting of the database, which copies of the database do not have."""


@pytest.fixture(scope="module")
def captured(engine: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Path:
    chosen = ("customer", "orders of", "insert", "update", "without")
    return capture(engine, "shop", tmp_path_factory.mktemp("capture") / "run", chosen=chosen)


@contextlib.contextmanager
def start(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Start a command, and stop it at the end of the context."""
    command = [sys.executable, "-m", "dbdyno", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def has_measured(engine: EmbeddedPostgres) -> bool:
    """Return True once a rehearsal of the database `old` has measured blocks: each has a server process of its own."""
    seen: set[int] = set()
    with psycopg.connect(**engine.conninfo(), autocommit=True) as connection:

        def has_eight() -> bool:
            seen.update(row[0] for row in connection.execute("select pid from pg_stat_activity where datname = 'old'"))
            return len(seen) >= 8

        return until(has_eight)


def sums(where: str) -> tuple[object, ...] | None:
    with psycopg.connect(where) as connection:
        return connection.execute(SUMS).fetchone()


@FEW
def test_an_index_is_tried_in_a_copy_that_is_gone_afterwards(
    engine: EmbeddedPostgres, captured: Path, tmp_path: Path
) -> None:
    old = database(engine, "old", "drop index orders_customer", *OWN_SCHEMA, template="shop")
    before = sums(old)
    words = ("--change", "create index made on orders (customer)", "--load", captured, "--for", "30s", "--seed", "1")
    done = dbdyno("rehearse", old, *words, "--out", tmp_path / "runs")
    model = model_of(done, tmp_path / "runs")
    (faster,) = [row for row in model["statements"] if row["decision"] == "faster"]
    assert faster["text"] == "select id, amount from orders where customer = $1"
    assert "made" in faster["plan_change"]
    assert {"fails", "differs"}.isdisjoint(row["decision"] for row in model["statements"])
    if model["total"]["high"] < 1:
        assert "With create index made on orders (customer), the load takes" in done.stdout.replace("\n", " ")
    assert sums(old) == before, "every write was rolled back, and the copy is dropped"


@FEW
def test_a_setting_is_tried_in_the_same_database(engine: EmbeddedPostgres, captured: Path, tmp_path: Path) -> None:
    old = database(engine, "old", "alter database old set jit = off", template="shop")
    before = sums(old)
    words = ("--change", "set work_mem = '64kB'", "--load", captured, "--for", "30s", "--seed", "1")
    verdict = tmp_path / "verdict.xml"
    done = dbdyno("rehearse", old, *words, "--out", tmp_path / "runs", "--fail-on", "regression", "-o", verdict)
    assert done.returncode == 1, done.stdout + done.stderr
    model = model_in(tmp_path / "runs")
    assert model["verdict"]["decision"] == "slower"
    assert sums(old) == before
    assert 'type="slower"' in verdict.read_text()
    (run,) = (tmp_path / "runs").iterdir()
    again = dbdyno("report", run, "--format", "json")
    assert json.loads(again.stdout)["verdict"] == model["verdict"]
    asked = dbdyno(
        "sql", "select count(distinct statement) as n from rehearsed_blocks", "--run", run, "--format", "json"
    )
    assert json.loads(asked.stdout)[0]["n"] == len(model["statements"]), asked.stderr


@FEW
def test_statements_that_a_server_counted_get_values_of_its_columns(tmp_path: Path) -> None:
    with EmbeddedPostgres(settings={"shared_preload_libraries": "pg_stat_statements"}) as own:
        old = database(own, "shop", SMALL, "create extension pg_stat_statements")
        with psycopg.connect(old, autocommit=True) as connection:
            connection.execute("select pg_stat_statements_reset()")
            for at in range(1, 30):
                connection.execute("select name from customers where id = %s", [at])
                connection.execute("select count(*) from orders where status = 'paid' and id > 7 limit 5")
                connection.execute(
                    "insert into orders (customer, amount, status, region, zone) values (1, 1, 'x', 1, 1)"
                )
                connection.execute("select now() - interval '1 day'")
            connection.execute("alter role current_user password 'hunter2'")
        done = dbdyno(
            "rehearse",
            old,
            "--change",
            "drop index orders_customer",
            "--load",
            "statements",
            "--for",
            "30s",
            "--out",
            tmp_path / "runs",
        )
        model = model_of(done, tmp_path / "runs")
    found = {row["text"][:24]: row for row in model["statements"]}
    assert found["select name from custome"]["origin"] == "data"
    assert found["select count(*) from ord"]["decision"] in ("same", "unclear")
    assert found["insert into orders (cust"]["decision"] in ("same", "unclear")
    assert "value changes" in found["select now() - interval "]["answers"]
    assert "have values from the data" in model["load"]["notes"][0]
    (kept,) = (row["text"] for row in model["left_out"] if row["text"].startswith("alter role"))
    assert "hunter2" not in kept, "the server keeps the text of commands as it was typed"


@FEW
def test_a_reserved_word_is_named_across_versions(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    newer = binaries_of("wheel")
    with EmbeddedPostgres(binaries=newer) as other:
        with psycopg.connect(**engine.conninfo()) as connection:
            if connection.info.server_version >= 160000:
                pytest.skip("the installed server reserves the word itself: tools/matrix --fetch 15 gets an older one")
        new = database(other, "shop", CUSTOMERS)
        captured = capture(engine, "shop", tmp_path / "captured", chosen=("aliased", "customer"))
        old = make_conninfo("", **{**engine.conninfo(), "dbname": "shop"})
        done = dbdyno(
            "rehearse", old, new, "--load", captured, "--for", "30s", "--out", tmp_path / "runs", "--fail-on", "failure"
        )
    assert done.returncode == 1, done.stdout + done.stderr
    (failed,) = [row for row in model_in(tmp_path / "runs")["statements"] if row["decision"] == "fails"]
    assert failed["cause"]["code"] == "keyword"
    assert failed["cause"]["sentence"].startswith("system_user is a reserved word on 1")


@FEW
def test_a_new_server_is_made_of_the_old_one(engine: EmbeddedPostgres, captured: Path, tmp_path: Path) -> None:
    old = database(engine, "old", "alter database old set random_page_cost = 2", *OWN_SCHEMA, template="shop")
    before = sums(old)
    newer = binaries_of("wheel")
    words = ("--new", f"bindir={newer.bindir}", "--load", captured, "--for", "30s", "--out", tmp_path / "runs")
    done = dbdyno("rehearse", old, *words)
    model = model_of(done, tmp_path / "runs")
    assert model["sides"][1]["version"] // 10000 == newer.major
    assert {row["decision"] for row in model["statements"]} <= {"same", "faster", "unclear", "slower"}, "none fails"
    assert any("random_page_cost" in note for note in model["load"]["notes"])
    assert "random_page_cost" not in [row["name"] for row in model["settings"]]
    assert sums(old) == before


def test_a_server_that_breaks_off_leaves_what_was_measured(captured: Path, tmp_path: Path) -> None:
    with shop(SMALL) as own, contextlib.ExitStack() as ending:
        old, new = database(own, "old", template="shop"), database(own, "new", template="shop")
        words = ["rehearse", old, new, "--load", str(captured), "--for", "60s", "--out", str(tmp_path / "runs")]
        running = ending.enter_context(start(*words))
        assert until(lambda: list(tmp_path.glob("runs/*/manifest.json"))) and has_measured(own)
        own.stop()
        _, errors = running.communicate(timeout=60)
        assert running.returncode == 2
        assert "server closed the connection" in errors and "next:" in errors
    (run,) = (tmp_path / "runs").iterdir()
    assert json.loads((run / "manifest.json").read_text())["status"] == "aborted"
    asked = dbdyno("sql", "select count(*) as n from rehearsed_blocks", "--run", run, "--format", "json")
    assert json.loads(asked.stdout)[0]["n"] > 0


def test_an_interrupt_ends_it_soon_and_keeps_what_was_measured(
    engine: EmbeddedPostgres, captured: Path, tmp_path: Path
) -> None:
    old = database(engine, "old", template="shop")
    words = ["rehearse", old, "--change", "set jit = off", "--load", str(captured), "--for", "60s"]
    with start(*words, "--out", str(tmp_path / "runs")) as running:
        assert until(lambda: list(tmp_path.glob("runs/*/manifest.json"))) and has_measured(engine)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "what was measured is in" in errors
    (run,) = (tmp_path / "runs").iterdir()
    assert json.loads((run / "manifest.json").read_text())["status"] == "aborted"


def test_a_setting_that_may_hold_a_secret_is_named_without_its_value() -> None:
    old = Catalog(150000, settings={"primary_conninfo": "host=a password=hunter2", "work_mem": "4096 kB"})
    new = Catalog(150000, settings={"primary_conninfo": "", "work_mem": "64 MB"})
    assert list(differing_settings(old, new)) == [("primary_conninfo", "(hidden)", ""), ("work_mem", "4MB", "64MB")]


@FEW
@pytest.mark.usefixtures("html_page")
def test_a_message_about_a_value_does_not_show_it(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    old = database(engine, "old", "create table t (v text)", "insert into t values ('1')", template="shop")
    new = database(engine, "new", "create table t (v text)", "insert into t values ('secret')", template="shop")
    with run_proxy(ProxyOptions("127.0.0.1:0", ("127.0.0.1", engine.port), binds=True), tmp_path / "captured") as it:
        way = {**engine.tcp_conninfo(), "host": "127.0.0.1", "port": it.address.rpartition(":")[2], "dbname": "old"}
        with psycopg.connect(**{**way, "sslmode": "disable"}, autocommit=True) as connection:
            connection.execute("select sum(v::int) from t")
    done = dbdyno("rehearse", old, new, "--load", tmp_path / "captured", "--for", "30s", "--out", tmp_path / "runs")
    assert "22P02 invalid input syntax for type integer" in done.stdout
    kept = "".join(file.read_text(errors="replace") for file in (tmp_path / "runs").rglob("*") if file.is_file())
    assert "secret" not in done.stdout + kept


def test_a_database_in_use_is_refused_and_nothing_is_made(
    engine: EmbeddedPostgres, captured: Path, tmp_path: Path
) -> None:
    old = database(engine, "old", template="shop")
    with psycopg.connect(old, application_name="webshop") as user:
        user.execute("select 1")
        done = dbdyno("rehearse", old, "--change", "set jit = off", "--load", captured, "--out", tmp_path / "runs")
    assert done.returncode == 2
    assert "looks like a production server: 1 session of others was at work" in done.stderr
    assert "webshop" in done.stderr and "next:" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_sessions_that_the_role_may_not_look_at_count(engine: EmbeddedPostgres, captured: Path, tmp_path: Path) -> None:
    old = database(engine, "old", "drop role if exists poor", "create role poor login", template="shop")
    poor = make_conninfo(old, user="poor")
    with psycopg.connect(old, application_name="webshop"):
        time.sleep(0.1)
        done = dbdyno("rehearse", poor, "--change", "set jit = off", "--load", captured, "--out", tmp_path / "runs")
    assert (done.returncode, "looks like a production server" in done.stderr) == (2, True), done.stdout + done.stderr


@FEW
def test_a_target_without_the_tables_says_what_lacks(engine: EmbeddedPostgres, captured: Path, tmp_path: Path) -> None:
    old, new = database(engine, "old", template="shop"), database(engine, "new", "create table others (id int)")
    done = dbdyno("rehearse", old, new, "--load", captured, "--for", "30s", "--out", tmp_path / "runs")
    assert "fail" in done.stdout
    assert 'relation "orders" does not exist' in done.stdout.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("OLD", "--load", "statements"), "give NEW, --change or --new"),
        (("OLD", "NEW", "--change", "set jit = off", "--load", "statements"), "give NEW, --change or --new"),
        (("OLD", "--new", "version=9", "--load", "statements"), "no PostgreSQL 9 is installed here"),
        (("OLD", "--new", "bindir=/nowhere", "--load", "statements"), "does not contain a working PostgreSQL server"),
        (("OLD", "--new", "newest", "--load", "statements"), "expected bindir=FOLDER or version=17"),
        (("OLD", "NEW", "--load", "statements", "--threshold", "much"), "expected a share"),
        (("OLD", "NEW", "--load", "statements", "--threshold", "5"), "for 5 percent write 5%"),
        (("OLD", "NEW", "--load", "statements", "--timeout", "500us"), "expected a time from 1ms to 596h"),
        (("OLD", "NEW", "--load", "statements", "--timeout", "600h"), "expected a time from 1ms to 596h"),
        (("OLD", "--change", "creat index", "--load", "nothing"), "syntax error"),
        (("OLD", "--change", "set jit = off", "--load", "nothing"), "is not a run folder: there is no such folder"),
        (("OLD", "--change", "set jit = off", "--load", "statements"), "pg_stat_statements"),
    ],
)
def test_what_cannot_be_rehearsed_is_an_error_with_a_reason(
    engine: EmbeddedPostgres, words: tuple[str, ...], says: str
) -> None:
    old = database(engine, "old", template="shop")
    done = dbdyno("rehearse", *(old if word == "OLD" else word for word in words))
    assert (done.returncode, says in done.stderr) == (2, True), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("/* a */ -- b\n (select 1)", None),
        ("begin", "begin does no work of its own"),
        ("COMMIT", "the time of commit depends on its whole transaction: only --replay includes it"),
        ("create table t ()", "a definition cannot be rehearsed: its effect is outside of the transaction"),
        ("select setval('s', 1)", "it calls setval, whose effect is not rolled back"),
        ("select \"setval\"/**/\n('s', 1)", "it calls setval, whose effect is not rolled back"),
        ("select dblink_open('c', 'x')", "it calls dblink_open, whose effect is not rolled back"),
        ("select pg_stat_reset_shared('io')", "it calls pg_stat_reset_shared, whose effect is not rolled back"),
        ('select U&"s\\0065tval"(1)', "it has names with Unicode escapes, which are not resolved"),
        ("select setval from t where a in (1)", None),
        ("select pg_sleep(1)", "it sleeps, which is no database time"),
        ("select mail('x')", "it calls mail, whose effect is not rolled back"),
        ("", "an empty statement cannot be rehearsed: its effect is outside of the transaction"),
    ],
)
def test_what_a_rollback_does_not_undo_is_left_out(text: str, reason: str | None) -> None:
    assert reason_left_out(text, OutsideEffects(functions={"mail": "mail"})) == reason


def test_answers_that_may_differ_by_right_are_not_compared() -> None:
    assert undetermined_reason("select random()") == "random, whose value changes"
    assert undetermined_reason("select * from t order by 1 limit 3") == ""
    assert undetermined_reason("select * from t where id = $1 limit $2") == "LIMIT without ORDER BY"
