"""Loads of a rehearsal: snapshots, server logs, encrypted captures; none of their values is in any written file."""

from __future__ import annotations

import base64
import contextlib
import os
import random
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from rehearsal_help import CUSTOMERS, database, model_in, model_of

from command_line import dbdyno, succeeded
from dbdyno.base.errors import EvidenceError, MoveError
from dbdyno.base.memory_folder import memory_folder
from dbdyno.bench.postgres.binaries import find_binaries
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.evidence.encryption import read_key
from dbdyno.move.database.masks import read_masks
from dbdyno.rehearse.load.logged_values import LoggedValues, logged_values
from dbdyno.rehearse.load.server import with_generated_values
from dbdyno.rehearse.load.snapshot import load_of_snapshot
from dbdyno.rehearse.masked_copy import effect_of
from dbdyno.rehearse.new_server import _move_database, copied_server
from dbdyno.rehearse.privacy import hidden_message, hidden_plan, hide_literals
from dbdyno.rehearse.sql_tree import parse_sql
from dbdyno.snapshot.reading.statement_names import names_of
from dbdyno.snapshot.store.folder import Store
from dbdyno.trace.proxy.proxy_run import ProxyOptions, run_proxy

pytestmark = pytest.mark.usefixtures("few_blocks")

SECRETS = ("miller@example.org", "4711815", "Xylophon")
"""Secret values in the private load."""


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "capture.key"
    path.write_bytes(base64.b64encode(os.urandom(32)) + b"\n")
    path.chmod(0o600)
    return path


def texts_in(folder: Path) -> str:
    """Return all bytes of all files as text, with the decoded rows of Parquet files."""
    found = []
    for file in folder.rglob("*"):
        if file.is_file():
            found.append(file.read_bytes().decode("latin-1"))
        if file.suffix == ".parquet":
            found.append(str(duckdb.sql(f"select * from read_parquet('{file}')").fetchall()))
    return "\n".join(found)


def private_capture(engine: EmbeddedPostgres, name: str, out: Path, key_file: Path | None = None) -> Path:
    """A load with secrets as literals, as values, in an error that a function raises, and in a setting."""
    options = ProxyOptions("127.0.0.1:0", ("127.0.0.1", engine.port), binds=True, key_file=key_file)
    with run_proxy(options, out) as it:
        host, _, port = it.address.rpartition(":")
        way = {**engine.tcp_conninfo(), "host": host, "port": port, "sslmode": "disable", "dbname": name}
        with psycopg.connect(**way, autocommit=True) as connection:
            connection.execute("set application_name = 'Xylophon'")
            for _ in range(4):
                connection.execute("select name from people where email = 'miller@example.org' and id < 4711815")
                connection.execute("select count(*) from people where email = %s", ["miller@example.org"])
                connection.execute("select count(*) from people where id > %s", [-4711815])
                connection.execute("select refused(%s)", ["Xylophon"])
                connection.execute("select max(note) from people where note <> 'Xylophon'")
    return out


def people(engine: EmbeddedPostgres) -> tuple[str, str]:
    """Return two databases; the second lacks an index, gives other answers, and has a function that raises an error."""
    schema = (
        "create table people (id int primary key, email text, name text, note text)",
        "insert into people select i, case when i = 5 then 'miller@example.org' else 'p' || i end, 'n' || i, 'x'"
        " from generate_series(1, 20000) i",
        "create index people_email on people (email)",
        "create function refused(text) returns text language plpgsql as 'begin return $1; end'",
        "analyze people",
    )
    raising = "create or replace function refused(text) returns text language plpgsql as"
    old = database(engine, "people_old", *schema, template="template1")
    new = database(
        engine,
        "people_new",
        "drop index people_email",
        "update people set note = 'xXylophon' where id = 9",
        f"{raising} 'begin raise exception ''% is blocked'', $1 using errcode = ''23505''; end'",
        template="people_old",
    )
    return old, new


def test_no_value_of_a_private_load_is_in_the_run_its_page_or_on_the_screen(
    engine: EmbeddedPostgres, tmp_path: Path, key: Path, html_page: None
) -> None:
    old, new = people(engine)
    captured = private_capture(engine, "people_old", tmp_path / "captured", key)
    kept = texts_in(captured)
    assert not [secret for secret in SECRETS if secret in kept]
    words = ("--load", captured, "--key-file", key, "--privacy", "--for", "30s", "--out", tmp_path / "runs")
    done = succeeded("rehearse", old, new, *words)
    model = model_in(tmp_path / "runs")
    by_text = {row["text"]: row for row in model["statements"]}
    slower = by_text["select name from people where email = ? and id < ?"]
    assert slower["decision"] in ("slower", "unclear"), slower
    failed = by_text["select refused($1)"]
    assert (failed["decision"], failed["error"]["message"]) == ("fails", "UniqueViolation")
    assert by_text["select max(note) from people where note <> ?"]["decision"] == "differs"
    written = texts_in(tmp_path / "runs") + done.stdout + done.stderr
    assert "Seq Scan on people" in written, "plans have names"
    assert not [secret for secret in SECRETS if secret in written]


@pytest.mark.soak
def test_an_encrypted_capture_is_replayed_as_it_was(
    engine: EmbeddedPostgres, tmp_path: Path, key: Path, html_page: None
) -> None:
    old, new = people(engine)
    captured = private_capture(engine, "people_old", tmp_path / "captured", key)
    words = ("--load", captured, "--key-file", key, "--privacy", "--replay", "all", "--for", "30s")
    done = dbdyno("rehearse", old, new, *words, "--out", tmp_path / "runs")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert model_in(tmp_path / "runs")["replay"] is not None
    written = texts_in(tmp_path / "runs") + done.stdout + done.stderr
    assert not [secret for secret in SECRETS if secret in written]


def test_an_encrypted_capture_needs_its_key(engine: EmbeddedPostgres, tmp_path: Path, key: Path) -> None:
    old, new = people(engine)
    captured = private_capture(engine, "people_old", tmp_path / "captured", key)
    assert "miller@example.org" not in texts_in(captured)
    without = dbdyno("rehearse", old, new, "--load", captured, "--out", tmp_path / "runs")
    assert (without.returncode, "name the key of the capture" in without.stderr) == (2, True)
    other = tmp_path / "other.key"
    other.write_bytes(base64.b64encode(bytes(32)))
    other.chmod(0o600)
    wrong = dbdyno("rehearse", old, new, "--load", captured, "--key-file", other, "--out", tmp_path / "runs")
    assert (wrong.returncode, "the key is wrong" in wrong.stderr) == (2, True)
    succeeded("trace", "replay", captured, "--target", old, "--key-file", key, "--speed", "max")
    succeeded("trace", "profile", captured)
    (tmp_path / "plan.toml").write_text(
        f'title = "x"\n[workload]\nreplay = "{captured}"\n[[arm]]\nname = "a"\n[[arm]]\nname = "b"\n'
    )
    planned = dbdyno("plan", "check", tmp_path / "plan.toml")
    assert (planned.returncode, "the messages of the capture are encrypted" in planned.stderr) == (2, True), (
        planned.stderr
    )
    assert not list(Path("/dev/shm").glob(f"dbdyno-memory-{os.getpid()}-*"))


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        (b"short", 0o600, "does not contain a key"),
        (b"\xff" * 32, 0o600, "holds no text"),
        (base64.b64encode(bytes(32)), 0o644, "other users may read the key"),
    ],
)
def test_a_key_is_32_bytes_that_nobody_else_can_read(tmp_path: Path, content: bytes, mode: int, says: str) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(mode)
    with pytest.raises(EvidenceError, match=says):
        read_key(path)
    with pytest.raises(EvidenceError, match="cannot be read: No such file"):
        read_key(tmp_path / "nothing")


def test_a_folder_in_memory_is_private_and_gone_afterwards() -> None:
    with memory_folder() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        left = folder.with_name("dbdyno-memory-999999999-x")
        left.mkdir()
        with memory_folder():
            assert not left.exists(), "what a killed process left is removed"
    assert not folder.exists()


def test_hidden_texts_have_no_literal_whatever_it_is() -> None:
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    marks = ("'{}'", "e'\\'{}'", "$a${}$a$", "b'{}'", "'x''{}'")
    for _ in range(300):
        secret = "".join(dice.choice("0123456789abcdef") for _ in range(12))
        number = str(dice.randrange(10**9, 10**12)) + dice.choice(("", ".5", "e+7", "e7"))
        text = f"select a1 from t_2 where x = {dice.choice(marks).format(secret)} and y in ({number}, -{number})"
        shown = hide_literals(text)
        assert secret not in shown and number.rstrip("e+7.5") not in shown, (seed, text)
        assert shown.startswith("select a1 from t_2 where x = "), (seed, text)
    assert hidden_plan('[{"Plan": {"Index Name": "i_1", "Filter": "(a = 77)", "Plan Rows": 5}}]') == (
        '[{"Plan": {"Index Name": "i_1", "Filter": "(a = ?)", "Plan Rows": 5}}]'
    )
    assert hidden_message("42601", 'syntax error at or near "4711"', is_raised=False, sent="select 4711 4711") == (
        'syntax error at or near "?"'
    )
    near = 'syntax error at or near "system_user"'
    assert hidden_message("42601", near, is_raised=False, sent="select system_user.a from b system_user") == near


def test_logs_are_a_load_without_a_capture_on_the_disk(
    engine: EmbeddedPostgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, html_page: None
) -> None:
    old, new = people(engine)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    line = "2026-11-20 10:00:0{at}.000 UTC [77] app@people_old LOG:  duration: 2.000 ms  execute <unnamed>: {text}"
    log = "\n".join(
        f"{line.format(at=at, text='select name from people where email = $1')}\n"
        "2026-11-20 10:00:00.000 UTC [77] app@people_old DETAIL:  parameters: $1 = 'miller@example.org'"
        for at in range(5)
    )
    (tmp_path / "postgresql.log").write_text(log + "\n")
    words = ("--load", tmp_path / "postgresql.log", "--privacy", "--for", "30s", "--out", tmp_path / "runs")
    done = dbdyno("rehearse", old, new, *words)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    model = model_in(tmp_path / "runs")
    (row,) = (*model["statements"], *model["left_out"])
    assert (row["calls"], row["origin"]) == (5, "captured")
    assert "miller@example.org" not in texts_in(tmp_path / "runs") + done.stdout


def test_statements_of_snapshots_get_values_of_the_old_server(tmp_path: Path) -> None:
    with EmbeddedPostgres(settings={"shared_preload_libraries": "pg_stat_statements"}) as own:
        old = database(own, "shop", CUSTOMERS, "create extension pg_stat_statements")
        store = tmp_path / "snaps"
        with psycopg.connect(old, autocommit=True) as connection:
            connection.execute("select pg_stat_statements_reset()")
            for times in (10, 30):
                for at in range(times):
                    connection.execute("select name from customers where id = %s", [at])
                succeeded("snap", "take", "--target", old, "--store", store)
        server = Postgres.open(old)
        text = "select name from customers where id = $1"
        calls = {
            name: next(one.calls for one in load_of_snapshot(Store(store), name, server).statements if one.text == text)
            for name in ("snap:1..2", "snap:1", "snap:last")
        }
        assert calls == {"snap:1..2": 30, "snap:1": 10, "snap:last": 40}
        renamed = Postgres.open(database(own, "copy", template="shop"))
        load = load_of_snapshot(Store(store), "snap:1..2", renamed)
        assert (load.kind, "The statements come from the database shop." in load.notes) == ("snapshot", True)
        words = ("--change", "set jit = off", "--load", store, "--for", "30s", "--out", tmp_path / "runs")
        done = dbdyno("rehearse", old, *words)
        model = model_of(done, tmp_path / "runs")
        row = next(row for row in (*model["statements"], *model["left_out"]) if row["text"] == text)
        assert (row["origin"], row["calls"]) == ("data", 40)
        unknown = dbdyno("rehearse", old, *words[:2], "--load", "snap:7", "--store", store)
        assert (unknown.returncode, "does not match a snapshot" in unknown.stderr) == (2, True), unknown.stderr


TEXT = "select name from customers where id = $1"
FORMS = {
    "text": f"Query Text: {TEXT}\nQuery Parameters: $1 = '{{}}'\nIndex Scan  (cost=0.1 rows=1)",
    "json": f'{{{{"Query Text": "{TEXT}", "Query Parameters": "$1 = \'{{}}\'", "Plan": {{{{}}}}}}}}',
    "yaml": f'Query Text: "{TEXT}"\nQuery Parameters: "$1 = \'{{}}\'"\nPlan:\n  Node Type: "x"',
    "xml": f"<explain><Query-Text>{TEXT}</Query-Text>"
    "<Query-Parameters>$1 = '{}'</Query-Parameters><Plan></Plan></explain>",
}


@pytest.mark.parametrize("form", FORMS)
def test_values_that_auto_explain_logged_are_read_from_each_of_its_formats(tmp_path: Path, form: str) -> None:
    lines = []
    for at, value in enumerate(("17", "18", "cut ...", "it''s")):
        said = FORMS[form].format(value).replace("\n", "\n\t")
        lines.append(f"2026-11-20 10:00:0{at}.000 CET [77] LOG:  duration: {at + 1}.000 ms  plan:\n\t{said}")
    (tmp_path / "postgresql.log").write_text("\n".join(lines) + "\n")
    found = logged_values([tmp_path]).executions_of("select  name from customers where id = $1", 5)
    assert [one.values for one in found] == [(b"17",), (b"18",), (b"it's",)]
    assert [one.elapsed_ns for one in found] == [1_000_000, 2_000_000, 4_000_000]


def test_logged_values_are_preferred_to_made_ones(engine: EmbeddedPostgres) -> None:
    server = Postgres.open(make_conninfo("", **{**engine.conninfo(), "dbname": "shop"}))
    values = LoggedValues()
    for at in range(1000):
        values.add("select name from customers where id = $1", f"$1 = '{at}'", at)
    values.add("select count(*) from words where rank = 5", "", 1)
    values.add("select city from customers where id = $1", "", 1)
    counted = [
        ("select name from customers where id = $1", 9, 900, ""),
        ("select count(*) from words where rank = $1", 5, 50, ""),
        ("select city from customers where id = $1", 5, 40, ""),
    ]
    with server.connect() as conn:
        statements, note = with_generated_values(conn, counted, 5, values)
    first, second, third = (one.samples for one in statements)
    assert [int(one.values[0] or 0) // 200 for one in first] == pytest.approx([0, 1, 2, 3, 4], abs=1), (
        "by the quantiles of their time"
    )
    assert [(one.text, one.is_simple) for one in second] == [("select count(*) from words where rank = 5", True)]
    assert {one.origin for one in third} == {"data"}, "a statement whose values were not logged gets made ones"
    assert note.startswith("Parameters: 2 statements have values that were logged, 1 statements have values from")


def test_queries_of_system_catalogs_are_no_load(engine: EmbeddedPostgres) -> None:
    server = Postgres.open(make_conninfo("", **{**engine.conninfo(), "dbname": "shop"}))
    counted = [
        ("select c.relname from pg_class c, pg_catalog.pg_namespace n where n.oid = $1", 9, 300, ""),
        ("select name from customers where id = $1", 9, 600, ""),
        ("select count(*) from customers, pg_class", 5, 50, ""),
        ("with own as (select oid from pg_class) select count(*) from own", 5, 50, ""),
    ]
    with server.connect() as conn:
        statements, note = with_generated_values(conn, counted)
        only, _ = with_generated_values(conn, counted[:1])
    assert [one.number for one in statements] == [1, 2]
    assert [one.text for one in statements] == [counted[1][0], counted[2][0]]
    assert note.endswith(" 2 statements on system catalogs, with 35.0% of the time, are left out.")
    assert len(only) == 1, "if there is nothing else they are the load"


MASKED = read_masks(["people.email = hash", "app.visits.who = hash"])


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ("select name from people where lower(email) = lower($1)", "looks for a value of people.email"),
        ("select 1 from people p join app.visits v on v.who = p.email", "may return people.email"),
        (
            "select 1 from people p join app.visits v on v.who = p.email where v.who like ?",
            "looks for a value of visits.who",
        ),
        ("update people set email = $1 where id = $2", "may return people.email"),
        ("select id from people order by email", "may return people.email"),
        ("select * from people where id in (?, ?)", "may return people.email"),
        ("select * from mails where id = $1", "reads mails, a view of people.email"),
        ("select id from people where id = $1", ""),
        ("select email from customers where email = $1", ""),
        ("select email from ((", "cannot be parsed, and may look for people.email"),
    ],
)
def test_a_masked_copy_leaves_out_statements_that_look_for_its_values(text: str, effect: str) -> None:
    left_out, uncompared = effect_of(text, MASKED, {"mails": "people.email"})
    assert effect in (left_out or uncompared) and bool(effect) == bool(left_out or uncompared)
    assert bool(left_out) == ("look" in effect)


def test_a_new_server_can_have_a_masked_copy(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    old, _ = people(engine)
    with psycopg.connect(old, autocommit=True) as connection:
        connection.execute("create view mails as select id, email from people")
    with run_proxy(ProxyOptions("127.0.0.1:0", ("127.0.0.1", engine.port), binds=True), tmp_path / "captured") as it:
        way = {**engine.tcp_conninfo(), "host": "127.0.0.1", "port": it.address.rpartition(":")[2]}
        with psycopg.connect(**{**way, "sslmode": "disable", "dbname": "people_old"}, autocommit=True) as connection:
            for at in range(1, 4):
                connection.execute("select * from people where id = %s", [at])
                connection.execute("select email from mails where id = %s", [at])
                connection.execute("select name from people where id = %s", [at])
                connection.execute("select name from people where email = 'miller@example.org'")
    bindir = find_binaries(dict(os.environ)).bindir
    words = ("--new", f"bindir={bindir}", "--mask", "people.email = hash", "--load", tmp_path / "captured")
    done = dbdyno("rehearse", old, *words, "--for", "30s", "--out", tmp_path / "runs")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    model = model_in(tmp_path / "runs")
    assert "The new side is masked: people.email = hash." in model["load"]["notes"]
    assert not [row for row in model["statements"] if row["decision"] in ("fails", "differs")], "no false alarm"
    rows = {row["text"]: row for row in (*model["statements"], *model["left_out"])}
    answers = {text: row["answers"] for text, row in rows.items()}
    assert "may return people.email" in answers["select * from people where id = $1"]
    assert "a view of people.email" in answers["select email from mails where id = $1"]
    assert answers["select name from people where id = $1"] == ""
    looking = rows["select name from people where email = ?"]
    assert looking["reason"] == "it looks for a value of people.email, which is masked on the new side"
    refused = dbdyno("rehearse", old, old, *words[2:])
    assert (refused.returncode, "--mask works only with the copy that --new makes" in refused.stderr) == (2, True)


def test_no_masked_value_is_in_the_copy_the_capture_the_run_or_on_the_screen(
    engine: EmbeddedPostgres, tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch, html_page: None
) -> None:
    old, _ = people(engine)
    captured = private_capture(engine, "people_old", tmp_path / "captured", key)
    copies = []

    @contextlib.contextmanager
    def seen(*given: Any) -> Iterator[Any]:
        with copied_server(*given) as (copy, carried):
            with contextlib.closing(copy.connect()) as conn:
                rows = conn.execute("select people::text from people").fetchall()
                copies.append(str(rows + conn.execute("select s::text from pg_stats s").fetchall()))
            yield copy, carried

    monkeypatch.setattr("dbdyno.rehearse.new_server.copied_server", seen)
    masks = ("people.email = keep-length", "people.note = constant:masked", "people.name = hash")
    words = (
        "--new",
        f"bindir={find_binaries(dict(os.environ)).bindir}",
        *(w for one in masks for w in ("--mask", one)),
    )
    load = ("--load", captured, "--key-file", key, "--privacy", "--for", "30s", "--out", tmp_path / "runs")
    done = dbdyno("rehearse", old, *words, *load)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert "masked" in copies[0] and len(copies) == 1
    written = "".join((copies[0], texts_in(captured), texts_in(tmp_path / "runs"), done.stdout, done.stderr))
    assert not [secret for secret in SECRETS if secret in written]
    assert list((tmp_path / "runs").glob("*/report.html")), "the page is among the files"


def test_statements_unknown_to_the_parser_are_read_without_its_warnings(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for text in ("create extension if not exists hstore with schema public", "prepare p as select $1"):
        parse_sql(text)
        names_of(text)
    assert caplog.records == []


def test_a_copy_that_fails_does_not_advise_to_resume_a_job_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise MoveError("not available", next_step="install x, then `dbdyno move resume /tmp/job --source DSN`")

    monkeypatch.setattr("dbdyno.rehearse.new_server.move_database", refused)
    nowhere: Any = None
    with pytest.raises(MoveError) as failed:
        _move_database(nowhere, nowhere, lambda _: None, (), "")
    assert failed.value.next_step == "install x, then rehearse again"
