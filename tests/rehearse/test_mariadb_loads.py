"""Loads from a MariaDB server: counted statements with remembered texts, and the slow log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rehearsal_help import database, engine_with, model_in

from command_line import dbdyno
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from mariadb_server import MariaServer, missing

pytestmark = [
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.usefixtures("few_blocks"),
]

ROWS = "create table kept (id int primary key, s varchar(100))"
REMEMBERS = [
    f"--performance-schema-consumer-events-statements-{which}=ON" for which in ("current", "history", "history-long")
]
SLOW = ["--slow-query-log=1", "--slow-query-log-file=slow.log", "--long-query-time=0"]
engine = engine_with("old", ROWS, "insert into kept select i, 'x' || i from generate_series(1, 500) i", "analyze")


@pytest.fixture(scope="module")
def loaded() -> Iterator[MariaServer]:
    """Yield a server that executed forty key lookups, two sums, and a statement that PostgreSQL does not understand."""
    with MariaServer([*REMEMBERS, *SLOW]) as server:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("create database shop")
            cursor.execute("use shop")
            cursor.execute(ROWS)
        with server.connect(database="shop") as connection, connection.cursor() as cursor:
            for number in range(40):
                cursor.execute(f"select s from kept where id = {number}")
            for _ in range(2):
                cursor.execute("select count(*), max(s) from kept")
            cursor.execute('select s from `kept` where s = "planted-secret"')
        yield server


def rehearsed(engine: EmbeddedPostgres, folder: Path, load: object, *words: str) -> tuple[JsonObject, str]:
    old = database(engine, "old_copy", template="old")
    given = ("--change", "set jit = off", "--load", load, "--for", "30s", "--out", folder / "runs", *words)
    done = dbdyno("rehearse", old, *given)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return model_in(folder / "runs"), " ".join(done.stdout.split())


def known(model: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The statements on the table, by their text in lower case without quotes and blanks."""
    rows = [*model["statements"], *model["left_out"]]
    texts = [(str(row["text"]).lower().replace("`", "").replace(" ", ""), row) for row in rows]
    return {text: row for text, row in texts if "fromkept" in text}


def test_counted_statements_are_rehearsed_with_the_texts_that_the_server_remembers(
    engine: EmbeddedPostgres, loaded: MariaServer, tmp_path: Path
) -> None:
    load = loaded.dsn.replace("/test", "/shop")
    model, said = rehearsed(engine, tmp_path, load)
    found = known(model)
    assert found["selectsfromkeptwhereid=?"]["calls"] == 40
    assert found["selectcount(*),max(s)fromkept"]["calls"] == 2
    reason = found["selectsfromkeptwheres=?"]["reason"]
    assert reason.startswith(("it fails on the old server, too", "there was no time")), reason
    assert "The load comes from MariaDB" in said


@pytest.mark.usefixtures("html_page")
def test_a_slow_log_is_a_load_and_private_without_its_values(
    engine: EmbeddedPostgres, loaded: MariaServer, tmp_path: Path
) -> None:
    model, said = rehearsed(engine, tmp_path, loaded.data / "slow.log", "--privacy")
    assert known(model)["selectsfromkeptwhereid=?"]["calls"] == 40
    files = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.suffix in (".json", ".html"))
    assert b"planted-secret" not in files and "planted-secret" not in said


def test_a_server_that_does_not_answer_is_told(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    old = database(engine, "old_copy", template="old")
    done = dbdyno("rehearse", old, "--change", "set jit = off", "--load", "mariadb://me@127.0.0.1:1/shop")
    assert (done.returncode, "check address, user and password" in done.stderr) == (2, True), done.stderr
