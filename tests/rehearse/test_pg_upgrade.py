"""`dbdyno rehearse --new … --upgrade`: pg_upgrade creates the new side from a data folder that it can consume."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from rehearsal_help import capture, database, model_in

from command_line import dbdyno
from dbdyno.base.errors import TargetError
from dbdyno.bench.engine.os_user import engine_account
from dbdyno.bench.postgres.binaries import Binaries, inspect, wheel_folders
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.rehearse.new_server import named_binaries

pytestmark = pytest.mark.usefixtures("few_blocks")

SHOP = """create table customers (id int primary key, name text, city text);
insert into customers select i, 'name ' || i, 'city ' || i % 9 from generate_series(1, 20000) i; analyze"""


def wheels() -> list[Binaries]:
    """The servers in the wheel, the oldest first."""
    found = sorted(inspect(wheel_folders(), "wheel"), key=lambda one: one.major)
    if len(found) < 2:
        pytest.skip("the wheel has fewer than two versions of PostgreSQL: make setup-test gets one with two")
    return found


@pytest.fixture
def old(made_anew: None) -> Iterator[EmbeddedPostgres]:
    """Yield a server of the oldest version, whose folder remains when it is stopped."""
    with EmbeddedPostgres(binaries=wheels()[0]) as running:
        database(running, "shop", SHOP)
        yield running


def copied(engine: EmbeddedPostgres, folder: Path) -> Path:
    """Stop the server and copy its data folder; the account that runs servers owns the copy."""
    engine.stop()
    to = Path(engine.folder) / folder.name
    shutil.copytree(engine.data_dir, to)
    for path in (to, *to.rglob("*")):
        shutil.chown(path, engine_account().uid, engine_account().gid)
    engine.start()
    return to


@pytest.mark.parametrize("kind", ["copy", pytest.param("link", marks=pytest.mark.soak)])
def test_the_new_side_is_the_upgraded_folder(old: EmbeddedPostgres, tmp_path: Path, kind: str) -> None:
    load = capture(old, "shop", tmp_path / "captured", chosen=("customer", "update"))
    data, new = copied(old, tmp_path / "expendable"), wheels()[-1]
    dsn = make_conninfo("", **{**old.conninfo(), "dbname": "shop"})
    words = ("--new", f"bindir={new.bindir}", "--upgrade", f"{kind}={data}", "--load", load, "--for", "30s")
    done = dbdyno("rehearse", dsn, *words, "--out", tmp_path / "runs")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    model = model_in(tmp_path / "runs")
    assert model["sides"][1]["version"] // 10000 == new.major
    assert {row["decision"] for row in model["statements"]} <= {"same", "faster", "unclear", "slower"}, "none fails"
    notes = " ".join(model["load"]["notes"])
    assert "checks passed" in notes and f"pg_upgrade --{kind} took" in notes
    assert (data / "PG_VERSION").exists(), "the folder stays"
    with psycopg.connect(dsn) as connection:
        assert connection.execute("select count(*) from customers").fetchone() == (20000,)


def test_programs_without_pg_upgrade_are_named(tmp_path: Path) -> None:
    """Some builds have only the server and initdb: they are never chosen if others of their version are complete."""
    newest = wheels()[-1]
    for folder in ("bin", "lib", "share"):
        (tmp_path / folder).mkdir()
    for name in ("postgres", "initdb", "pg_ctl"):
        (tmp_path / "bin" / name).symlink_to(newest.program(name))
    with pytest.raises(TargetError, match="has no pg_upgrade") as refused:
        named_binaries(f"bindir={tmp_path / 'bin'}", ["pg_upgrade"])
    assert f"install all programs of PostgreSQL {newest.major}" in str(refused.value)
    assert named_binaries(f"version={newest.major}", ["pg_upgrade"]).program("pg_upgrade").exists()


@pytest.mark.soak
def test_what_pg_upgrade_refuses_is_named(old: EmbeddedPostgres, tmp_path: Path) -> None:
    load = capture(old, "shop", tmp_path / "captured", chosen=("customer",))
    database(old, "closed")
    with psycopg.connect(**old.conninfo(), autocommit=True) as connection:  # type: ignore[arg-type]
        connection.execute("alter database closed allow_connections false")
    data = copied(old, tmp_path / "expendable")
    dsn = make_conninfo("", **{**old.conninfo(), "dbname": "shop"})
    words = ("--new", f"bindir={wheels()[-1].bindir}", "--upgrade", f"copy={data}", "--load", load)
    done = dbdyno("rehearse", dsn, *words, "--out", tmp_path / "runs")
    assert (done.returncode, "pg_upgrade refuses" in done.stderr) == (2, True), done.stdout + done.stderr
    assert "must allow connections" in done.stderr
    assert "closed" in done.stderr, "the list that pg_upgrade wrote is shown, because it is removed"
    assert "next: correct this cause" in done.stderr


def test_a_folder_that_cannot_be_upgraded_is_refused_with_the_reason(tmp_path: Path) -> None:
    words = ("--load", "statements", "--new", f"bindir={wheels()[-1].bindir}", "--upgrade")
    used = tmp_path / "used"
    (used / "pg_tblspc").mkdir(parents=True)
    (used / "PG_VERSION").write_text("16\n")
    (used / "postmaster.pid").touch()
    old = tmp_path / "old"
    shutil.copytree(used, old)
    (old / "postmaster.pid").unlink()
    (old / "PG_VERSION").write_text("9\n")
    spaces = tmp_path / "spaces"
    shutil.copytree(old, spaces)
    (spaces / "pg_tblspc" / "16400").touch()
    for given, says in (
        (f"move={used}", "expected copy=FOLDER or link=FOLDER"),
        (f"copy={tmp_path}", "is not a data folder of PostgreSQL"),
        (f"link={used}", "a server runs on this data folder, or was not shut down"),
        (f"copy={old}", "pg_upgrade needs the programs of PostgreSQL 9"),
        (f"copy={spaces}", "has 1 tablespaces"),
    ):
        done = dbdyno("rehearse", "OLD", *words, given)
        assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    assert "give both" in dbdyno("rehearse", "OLD", "NEW", "--load", "statements", "--upgrade", "copy=x").stderr
    assert list(used.iterdir())
