"""Load on a live engine from many hosts: one run, every operation there, each host known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import psycopg
import pytest
from cluster import Cluster
from conftest import Desk
from psycopg.conninfo import make_conninfo

from dbdyno.bench.postgres.embedded import EmbeddedPostgres

LOAD = """\
title = "two loads"
[target]
dsn = "%s"
[workload]
scripts = [{name = "count", text = '''insert into counted values (%s);'''}]
%s
[load]
sessions = %d
%s
[schedule]
blocks = %d
warmup_blocks = 1
turn = "400ms"
slice = "100ms"
[watch]
overhead_blocks = 0
[[arm]]
name = "a"
[[arm]]
name = "b"
%s
"""


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres() as running:
        yield running


@pytest.fixture(scope="module")
def dsn(server: EmbeddedPostgres) -> str:
    return make_conninfo("", **server.tcp_conninfo())


def written(desk: Desk, dsn: str, *, sessions: int = 5, blocks: int = 2, load: str = "", more: str = "", b: str = "") -> str:
    (desk.folder / "l.toml").write_text(LOAD % (dsn, "1", more, sessions, load, blocks, b))
    return "l.toml"


@pytest.fixture
def counted(dsn: str) -> Iterator[psycopg.Connection[tuple[int]]]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("drop table if exists counted")
        conn.execute("create table counted (n int)")
        yield conn


def block_records(run: Path) -> list[dict[str, object]]:
    return [json.loads(file.read_text()) for file in sorted((run / "blocks").glob("b*.json"))]


def test_every_call_is_in_evidence_once_with_its_host(
    two: Cluster, desk: Desk, dsn: str, counted: psycopg.Connection[tuple[int]]
) -> None:
    desk("run", written(desk, dsn), "--scheduler", two.address, "--out", "runs", "--seed", "3")
    run = desk.run("runs")
    (rows,) = counted.execute("select count(*) from counted").fetchone() or (0,)
    calls = f"read_parquet('{run}/calls/*.parquet')"
    found = duckdb.execute(
        f"select host, count(*), count(distinct session), min(session), max(session) from {calls}"
        " where kind = 'transaction' group by host order by min(session)"
    ).fetchall()
    assert sum(count for _, count, *_ in found) == rows > 100
    assert [(sessions, low, high) for _, _, sessions, low, high in found] == [(3, 0, 2), (2, 3, 4)]
    assert [host for host, *_ in found] == ["worker-0", "worker-1"] or len({host for host, *_ in found}) == 2
    hosts = [row for block in block_records(run) for row in block["report"]["hosts"]]  # type: ignore[index]
    assert sum(row["transactions"] for row in hosts) == rows
    for row in hosts:
        assert abs(row["clock_offset_ns"]) <= row["clock_error_ns"] + 100_000, row
        assert row["clock_error_ns"] < 20_000_000
        assert row["cut"] <= row["transactions"] / 2
    assert counted.execute("select count(*) from pg_stat_activity where application_name like 'dbdyno%'").fetchone() == (
        0,
    )
