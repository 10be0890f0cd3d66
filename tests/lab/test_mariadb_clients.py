"""Tests of arms with an external client on MariaDB: Connector/J beside our own load, and refused plans."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from command_line import dbdyno
from dbdyno.base.errors import PlanError
from dbdyno.bench.clients.builtin import BUILTIN_CLIENTS
from dbdyno.bench.mariadb.clients import environment_of
from mariadb_server import MariaServer, missing, running_server

PLAN = """title = "clients"
[target]
dsn = "mariadb"
[workload]
scripts = [
  {name = "read", text = "select 1 as one, 'it''s' as word from seq_1_to_7;"},
  {name = "book", text = "begin;\\ninsert into seats values (4711);\\nend;"},
]
setup = ["create table seats (id int primary key)", "insert into seats values (4711)"]
teardown = ["drop table if exists seats"]
expected_errors = ["1062"]
[load]
sessions = 2
[schedule]
blocks = 2
warmup_blocks = 1
turn = "60ms"
slice = "25ms"
[watch]
overhead_blocks = 0
"""
MODES = ("prepared", "binds", "literals")
CLIENTS = "".join(f'[[arm]]\nname = "{mode}"\nclient = "jdbc"\nstatement_mode = "{mode}"\n' for mode in MODES)


def written(folder: Path, arms: str, dsn: str = "mariadb") -> str:
    (folder / "plan.toml").write_text(PLAN.replace('dsn = "mariadb"', f'dsn = "{dsn}"') + arms)
    return "plan.toml"


server = pytest.fixture(scope="module")(running_server)


@pytest.mark.skipif(bool(missing()), reason=str(missing()))
def test_connector_j_does_the_same_as_our_own_load_and_tells_errors_in_the_same_words(tmp_path: Path) -> None:
    if (gone := BUILTIN_CLIENTS["jdbc"].missing()) is not None:
        pytest.skip(gone)
    done = dbdyno("run", written(tmp_path, f'[[arm]]\nname = "own"\n{CLIENTS}'), cwd=tmp_path, NO_COLOR="1")
    assert done.returncode in (0, 1), f"{done.stdout}\n{done.stderr}"
    (run,) = (tmp_path / "runs").iterdir()
    calls = f"read_parquet('{run}/calls/*.parquet')"
    read = duckdb.sql(f"select arm, min(rows), max(rows) from {calls} where statement = 'read' group by 1 order by 1")
    assert read.fetchall() == [(arm, 7, 7) for arm in sorted([*MODES, "own"])]
    errors = duckdb.sql(f"select distinct error, vendor_code, message, expected from {calls} where error is not null")
    assert errors.fetchall() == [("23000", 1062, "Duplicate entry '…' for key …", True)]
    failed = duckdb.sql(f"select count(distinct arm) from {calls} where error is not null and kind = 'transaction'")
    assert failed.fetchall() == [(4,)]
    manifest = json.loads((run / "manifest.json").read_text())
    assert "MariaDB Connector/J 3" in manifest["arms"][1]["changes"]["client"]


def test_the_conformance_test_passes_connector_j_and_refuses_who_has_no_driver(
    server: MariaServer, tmp_path: Path
) -> None:
    refused = dbdyno("client", "check", "psycopg", "--target", server.dsn, cwd=tmp_path)
    assert refused.returncode == 2 and "the client psycopg has no driver for this engine" in refused.stderr
    if (gone := BUILTIN_CLIENTS["jdbc"].missing()) is not None:
        pytest.skip(gone)
    done = dbdyno("client", "check", "jdbc", "--target", server.dsn, "--format", "json", cwd=tmp_path)
    found = {row["check"]: row for row in json.loads(done.stdout)}
    assert {name for name, row in found.items() if row["verdict"] == "failed"} == set(), done.stdout
    assert found["honours the fetch size"]["verdict"] == "noted"
    assert "MariaDB Connector/J" in found["starts"]["detail"]


@pytest.mark.parametrize(
    ("arm", "words"),
    [
        ('client = "psycopg"', "the client psycopg has no driver for this engine"),
        ('client = "jdbc"\nfetch_size = 10', "MariaDB sends all rows of a query at once"),
        ("fetch_size = 10", "fetch_size needs an external client"),
    ],
)
def test_what_no_client_of_mariadb_can_do_is_refused(server: MariaServer, tmp_path: Path, arm: str, words: str) -> None:
    plan = written(tmp_path, f'[[arm]]\nname = "a"\n{arm}\n', server.dsn)
    done = dbdyno("plan", "check", plan, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr


@pytest.mark.skipif(bool(missing()), reason=str(missing()))
def test_the_port_of_an_embedded_server_lets_nobody_in_without_its_password() -> None:
    import pymysql

    from dbdyno.bench.mariadb.embedded import EmbeddedMariaDB

    with EmbeddedMariaDB(tcp=True) as engine:
        way = engine.tcp_parameters()
        pymysql.connect(**way).close()
        for user, password in (("root", ""), (way["user"], ""), ("", "")):
            with pytest.raises(pymysql.err.OperationalError):
                pymysql.connect(host=way["host"], port=way["port"], user=user, password=password)


def test_a_connection_goes_by_the_environment() -> None:
    given = {"host": "::1", "port": 3307, "user": "a b", "password": "p@/", "dbname": "d", "application_name": "n"}
    own = environment_of(given, "arm 'a'")
    assert own["DBDYNO_DSN"] == "mariadb://a%20b:p%40%2F@[::1]:3307/d"
    assert (own["MARIADB_HOST"], own["MARIADB_PASSWORD"], own["MARIADB_PROGRAM_NAME"]) == ("::1", "p@/", "n")
    assert "MARIADB_SSL_CA" not in own
    with pytest.raises(PlanError, match="the connection string names a Unix socket"):
        environment_of({**given, "host": "/run/s"}, "arm 'a'")


def test_a_plan_from_elsewhere_says_which_programs_it_would_start() -> None:
    from dbdyno.bench.mariadb.bench import MariaDBBench
    from dbdyno.study.plan.file import parse_plan

    plan = parse_plan(PLAN + CLIENTS, Path("/elsewhere/plan.toml"))
    assert sum("starts the client jdbc" in line for line in MariaDBBench.side_effects(plan, None)) == 3
