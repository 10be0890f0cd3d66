"""`dbdyno rehearse --replay`: the load as it was, on both sides in turns, and at which speed a side gives up."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from rehearsal_help import database, model_in, shop

from command_line import dbdyno
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.trace.proxy.proxy_run import ProxyOptions, proxying

LEFT = "select (select sum(hashtext(o::text)) from orders o), (select count(*) from pg_database)"
SLOW = (
    "create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(.06); return new; end'",
    "create trigger slow before update on customers for each row execute function slow()",
)
"""A trigger that makes an update last longer than its session paused in the capture."""


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedPostgres]:
    with shop() as running:
        yield running


@pytest.fixture(scope="module")
def captured(engine: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sessions at once that insert, read their row again, and update, with think times."""
    out = tmp_path_factory.mktemp("capture") / "run"
    database(engine, "app", template="shop")

    def work(way: dict[str, str], first: int) -> None:
        with psycopg.connect(**way, autocommit=True) as session:
            for at in range(first, first + 15):
                made = session.execute(
                    "insert into orders (customer, amount, status, region, zone) values (%s, 7, 'new', 5, 50)"
                    " returning id",
                    [at],
                ).fetchone()
                assert made is not None
                session.execute("select amount, status from orders where id = %s", [made[0]])
                session.execute("update customers set city = 'city 1' where id = %s", [at])
                time.sleep(0.03)

    with proxying(ProxyOptions("127.0.0.1:0", ("127.0.0.1", engine.port), binds=True), out) as it:
        port = it.address.rpartition(":")[2]
        way = {**engine.tcp_conninfo(), "host": "127.0.0.1", "port": port, "sslmode": "disable", "dbname": "app"}
        threads = [threading.Thread(target=work, args=(way, first)) for first in (1, 1001)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return out


def left(where: str) -> tuple[object, ...] | None:
    with psycopg.connect(where) as connection:
        return connection.execute(LEFT).fetchone()


def test_both_sides_keep_the_pace_and_their_copies_are_gone(
    engine: EmbeddedPostgres, captured: Path, tmp_path: Path
) -> None:
    old = database(engine, "app", "alter database app set work_mem = '8MB'", template="shop")
    new = database(engine, "new", template="shop")
    before = left(old), left(new)
    words = ("--load", captured, "--for", "4s", "--speed", "1x,2x,max", "--seed", "1", "--out", tmp_path / "runs")
    done = dbdyno("rehearse", old, new, *words)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    replay = model_in(tmp_path / "runs")["replay"]
    rows = {(row["side"], row["speed"]): row for row in replay["speeds"]}
    assert set(rows) == {(side, speed) for side in ("old", "new") for speed in (1.0, 2.0, 0.0)}
    assert replay["sessions"] == 2
    for (_, speed), row in rows.items():
        assert row["turns"] == (3 if speed == 1 else 2)
        assert row["differing"] == row["broken"] == 0, (
            "keys that INSERT generated anew are sent in the later statements"
        )
        assert row["wal_bytes"] > 0
        assert speed == 0 or row["kept"] > 0
    assert rows["old", 0.0]["done_per_s"] > rows["old", 1.0]["done_per_s"]
    assert replay["gives_up"] == {"old": None, "new": None}
    assert "both sides keep the load's pace at 2 times its speed" in " ".join(done.stdout.split())
    assert "THE LOAD AS IT WAS" in done.stdout.upper()
    assert (left(old), left(new)) == before, "a replay writes to copies, which are dropped"


def test_a_side_that_loses_the_pace_is_a_regression(engine: EmbeddedPostgres, captured: Path, tmp_path: Path) -> None:
    old, new = database(engine, "app", template="shop"), database(engine, "new", *SLOW, template="shop")
    words = ("--load", captured, "--for", "4s", "--replay", "all", "--speed", "4", "--out", tmp_path / "runs")
    verdict = tmp_path / "verdict.xml"
    done = dbdyno("rehearse", old, new, *words, "--fail-on", "regression", "-o", verdict)
    assert done.returncode == 1, done.stdout + done.stderr
    model = model_in(tmp_path / "runs")
    assert model["replay"]["gives_up"]["new"] == 1.0
    assert model["verdict"]["headline"].startswith("The new side gives up at its own speed")
    assert ("new", 4.0) not in {(row["side"], row["speed"]) for row in model["replay"]["speeds"]}, "it gave up before"
    assert "the load as it was" in verdict.read_text()


def test_a_load_that_only_reads_is_replayed_in_the_database_itself(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    old = database(engine, "app", template="shop")
    with proxying(ProxyOptions("127.0.0.1:0", ("127.0.0.1", engine.port), binds=True), tmp_path / "captured") as it:
        way = {**engine.tcp_conninfo(), "host": "127.0.0.1", "port": it.address.rpartition(":")[2], "dbname": "app"}
        with psycopg.connect(**{**way, "sslmode": "disable"}, autocommit=True) as session:
            for at in range(20):
                session.execute("select name from customers where id = %s", [at])
                session.execute("select 1")
                time.sleep(0.02)
    words = ("--change", "set work_mem = '1MB'", "--load", tmp_path / "captured", "--replay", "200ms")
    done = dbdyno("rehearse", old, *words, "--for", "3s", "--out", tmp_path / "runs", "--format", "json")
    replay = json.loads(done.stdout)["replay"]
    assert replay["then_ns"] <= 0.25e9, "the first 200 ms"
    assert {row["differing"] for row in replay["speeds"]} == {0}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--load", "statements", "--replay", "all"), "--load statements has none"),
        (("--load", "CAPTURE", "--speed", "fast"), "'fast' is no speed"),
        (("--load", "CAPTURE", "--replay", "soon"), "--replay"),
    ],
)
def test_what_cannot_be_replayed_is_refused(captured: Path, words: tuple[str, ...], says: str) -> None:
    done = dbdyno("rehearse", "OLD", "NEW", *(str(captured) if word == "CAPTURE" else word for word in words))
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr


def test_a_role_that_may_not_make_copies_is_told_before_anything_is_measured(
    engine: EmbeddedPostgres, captured: Path, tmp_path: Path
) -> None:
    old = database(engine, "app", "drop role if exists plain", "create role plain login", template="shop")
    plain = make_conninfo(old, user="plain")
    done = dbdyno("rehearse", plain, plain, "--load", captured, "--replay", "all", "--out", tmp_path / "runs")
    assert (done.returncode, "ALTER ROLE plain CREATEDB" in done.stderr) == (2, True), done.stdout + done.stderr
    assert not (tmp_path / "runs").exists()
