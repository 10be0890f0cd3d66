"""Damaged or unsuitable loads: a log cut in the middle, another time zone, another database, no tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from rehearsal_help import database, engine_with, model_in

from command_line import dbdyno
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.embedded import EmbeddedPostgres

pytestmark = pytest.mark.usefixtures("few_blocks")

SHOP = (
    "create table customers (id int primary key, name text); insert into customers values (1, 'a'), (2, 'b'); analyze"
)
LINE = (
    "2026-11-20 1{}:00:0{}.000 {} [{}] me@{} LOG:  duration: 1 ms  statement: select name from customers where id = 1"
)
ROWS = "select (select sum(hashtext(c::text)) from customers c), (select count(*) from pg_database)"
engine = engine_with("shop", SHOP)


def imported(folder: Path, text: str) -> Path:
    """Import a log with `trace import --log`; return the captured run."""
    log = folder / "postgresql.log"
    log.write_text(text)
    done = dbdyno("trace", "import", "--log", log, "--line-prefix", "%m [%p] %u@%d ", "--out", folder / "captured")
    assert done.returncode in (0, 2), done.stdout + done.stderr
    return folder / "captured"


def rehearsed(engine: EmbeddedPostgres, load: Path, folder: Path, *changes: str) -> tuple[JsonObject, str]:
    """Rehearse on two copies, the new one with changes; return the model and the output. The data must not change."""
    old, new = database(engine, "old", template="shop"), database(engine, "new", *changes, template="shop")
    before = rows(old)
    done = dbdyno("rehearse", old, new, "--load", load, "--for", "30s", "--out", folder / "runs")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert rows(old) == before
    return model_in(folder / "runs"), " ".join(done.stdout.split())


def known(model: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all statements of a load, including those that a busy machine had no time for."""
    return [*model["statements"], *model["left_out"]]


def rows(where: str) -> object:
    with psycopg.connect(where) as connection:
        return connection.execute(ROWS).fetchone()


def line(at: int, zone: str = "UTC", name: str = "shop") -> str:
    return LINE.format(0, at, zone, 4711, name) + "\n"


def test_a_log_that_was_cut_in_the_middle_is_rehearsed_as_far_as_it_goes(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    load = imported(tmp_path, line(1) + line(2) + line(3)[:-30])
    model, _ = rehearsed(engine, load, tmp_path)
    (row,) = known(model)
    assert row["text"].startswith("select name from customers where")
    assert row["calls"] >= 2


def test_a_log_of_another_time_zone_is_the_same_load(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    load = imported(tmp_path, line(1, "EST") + line(2, "EST"))
    model, _ = rehearsed(engine, load, tmp_path)
    assert [row["calls"] for row in known(model)] == [2]


def test_a_capture_of_another_database_is_named_and_nothing_is_judged(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    load = imported(tmp_path, line(1, name="crm").replace("customers", "leads"))
    model, said = rehearsed(engine, load, tmp_path)
    assert model["verdict"]["decision"] == "no verdict"
    assert 'Every statement fails on the old server, so there is nothing to compare: relation "leads"' in said
    assert "check that OLD is a copy of the database that the load comes from" in said
    assert "The capture is of database crm; its statements are executed in old." in model["load"]["notes"]


def test_of_a_capture_of_several_databases_only_the_old_ones_sessions_are_taken(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    load = imported(tmp_path, line(1, name="old") + line(2, name="crm").replace("4711", "4712").replace("name", "mail"))
    model, _ = rehearsed(engine, load, tmp_path)
    assert len(known(model)) == 1
    assert "Sessions of other databases are left out: crm." in model["load"]["notes"]


def test_a_target_without_the_table_says_which_lacks(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    load = imported(tmp_path, line(1) + line(2))
    model, said = rehearsed(engine, load, tmp_path, "alter table customers rename to clients")
    assert model["verdict"]["decision"] == "fails"
    assert 'the new side has no table customers: relation "customers" does not exist' in said
    assert "create the new side as a copy of the old one" in said


def test_an_empty_new_side_is_refused_before_anything_is_measured(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    load = imported(tmp_path, line(1) + line(2))
    old, new = database(engine, "old", template="shop"), database(engine, "new")
    done = dbdyno("rehearse", old, new, "--load", load, "--for", "30s", "--out", tmp_path / "runs")
    assert (done.returncode, "has no tables, but the old side has 1" in done.stderr) == (2, True), done.stderr
    assert "dbdyno move OLD NEW --database" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_capture_whose_end_is_missing_is_refused_with_the_reason(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    load = imported(tmp_path, line(1) + line(2))
    for part in load.rglob("*.parquet"):
        part.write_bytes(part.read_bytes()[:-40])
    old = database(engine, "old", template="shop")
    done = dbdyno("rehearse", old, "--change", "set jit = off", "--load", load, "--out", tmp_path / "runs")
    assert done.returncode == 2
    assert "parquet" in done.stderr.lower() and "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("sides", [("mariadb", "host=/tmp"), ("host=/tmp", "mariadb://app@db/shop"), ("mysql://db/x",)])
def test_a_mariadb_as_a_side_is_refused_with_what_compares_two(sides: tuple[str, ...]) -> None:
    done = dbdyno(
        "rehearse", *sides, *(("--change", "set jit = off") if len(sides) == 1 else ()), "--load", "statements"
    )
    assert done.returncode == 2
    assert "MariaDB cannot be a side of a rehearsal" in done.stderr
    assert "`dbdyno run`" in done.stderr
