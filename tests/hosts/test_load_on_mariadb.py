"""Load on MariaDB from several hosts: complete evidence, no remaining sessions, and a lost host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster import Cluster, add_worker, cluster, ended
from networked import rows_of
from test_load_on_hosts import LOAD, Begun, block_records, wait_for_load

from conftest import Desk
from mariadb_server import MariaServer


@pytest.fixture(scope="module")
def server(maria: MariaServer) -> MariaServer:
    return maria


@pytest.fixture
def cursor(server: MariaServer) -> Iterator[Any]:
    with server.connect() as conn, conn.cursor() as found:
        found.execute("create or replace table test.counted (n int)")
        yield found


def counted(cursor: Any) -> int:
    cursor.execute("select count(*) from test.counted")
    return int(cursor.fetchone()[0])


def sessions_of(cursor: Any) -> int:
    cursor.execute("select count(*) from information_schema.processlist where db = 'test'")
    return int(cursor.fetchone()[0])


def planned(desk: Desk, server: MariaServer, *, sessions: int = 5, load: str = "", blocks: int = 2) -> str:
    (desk.folder / "l.toml").write_text(LOAD % (server.dsn, sessions, load, blocks))
    return "l.toml"


def check_calls(run: Path, rows: int) -> None:
    (found,) = rows_of(
        run, "select count(*), count(distinct host), count(distinct session) from calls where kind = 'transaction'"
    )
    assert found == (rows, 2, 5)
    hosts = [row for block in block_records(run) for row in block["report"]["hosts"]]  # type: ignore[index]
    assert sum(row["transactions"] for row in hosts) == rows


def test_every_call_on_mariadb_is_in_evidence_once(two: Cluster, desk: Desk, server: MariaServer, cursor: Any) -> None:
    desk("run", planned(desk, server), "--scheduler", two.address, "--out", "runs", "--seed", "3")
    rows = counted(cursor)
    check_calls(desk.run("runs"), rows)
    assert rows > 50
    assert sessions_of(cursor) == 0


@pytest.mark.soak
def test_open_loops_on_mariadb_share_the_rate(two: Cluster, desk: Desk, server: MariaServer, cursor: Any) -> None:
    desk("run", planned(desk, server, load="rate_per_s = 100"), "--scheduler", two.address, "--out", "runs")
    rows = counted(cursor)
    check_calls(desk.run("runs"), rows)
    assert rows == pytest.approx(100 * 3 * 0.8, rel=0.25)  # three blocks of two arms, 400 ms each


@pytest.mark.soak
def test_a_killed_worker_on_mariadb_ends_the_block_and_not_the_run(
    desk: Desk, server: MariaServer, cursor: Any, tmp_path: Path
) -> None:
    with cluster(tmp_path, 2) as found:
        run = Begun(desk, server.dsn, found)
        wait_for_load(lambda: counted(cursor))
        found.kill(found.workers[0])
        add_worker(found, tmp_path, "worker-9")
        assert run.process.wait(180) in (0, 1), run.said.read_text()
        ended(found.workers[-1])
    assert run.status() == "complete"
    assert any("run again" in mark for one in block_records(desk.run("runs")) for mark in one["marks"])  # type: ignore[attr-defined]
    assert sessions_of(cursor) == 0
