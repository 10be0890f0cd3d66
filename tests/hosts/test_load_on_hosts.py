"""Load on a live engine from many hosts: one run, complete evidence, and the host of each operation is known."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from logging.handlers import BufferingHandler
from pathlib import Path

import duckdb
import psycopg
import pytest
from cluster import Cluster, add_worker, cluster, ended
from psycopg.conninfo import make_conninfo

from command_line import dbdyno
from conftest import Desk
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.hosts.worker_load import drop_renewals_from_log
from waiting import until

Counted = psycopg.Connection[tuple[int]]
"""A session at the server on which the load counts its transactions."""
LOAD = """\
title = "two loads"
arm = [{name = "a"}, {name = "b"}]
[target]
dsn = "%s"
[workload]
scripts = [{name = "count", text = '''\\sleep 5 ms
insert into counted values (1);'''}]
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
"""


def written(desk: Desk, dsn: str, *, sessions: int = 5, blocks: int = 2, load: str = "") -> str:
    (desk.folder / "l.toml").write_text(LOAD % (dsn, sessions, load, blocks))
    return "l.toml"


@pytest.fixture
def counted(dsn: str) -> Iterator[Counted]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("drop table if exists counted")
        conn.execute("create table counted (n int)")
        yield conn


def block_records(run: Path) -> list[dict[str, object]]:
    return [json.loads(file.read_text()) for file in sorted((run / "blocks").glob("b*.json"))]


def test_every_call_is_in_evidence_once_with_its_host(two: Cluster, desk: Desk, dsn: str, counted: Counted) -> None:
    (shared := desk.folder / "shared").mkdir()
    plan = written(desk, dsn, load=f'shared_folder = "{shared}"')
    desk("run", plan, "--scheduler", two.address, "--out", "runs", "--seed", "3")
    assert not list(shared.iterdir())
    run = desk.run("runs")
    (rows,) = counted.execute("select count(*) from counted").fetchone() or (0,)
    calls = f"read_parquet('{run}/calls/*.parquet')"
    found = (
        duckdb.connect()
        .execute(
            f"select host, count(*), count(distinct session), min(session), max(session) from {calls}"
            " where kind = 'transaction' group by host order by min(session)"
        )
        .fetchall()
    )
    assert sum(count for _, count, *_ in found) == rows > 100
    assert [(sessions, low, high) for _, _, sessions, low, high in found] == [(3, 0, 2), (2, 3, 4)]
    assert {host for host, *_ in found} == {"worker-0", "worker-1"}
    hosts = [row for block in block_records(run) for row in block["report"]["hosts"]]  # type: ignore[index]
    assert sum(row["transactions"] for row in hosts) == rows
    for row in hosts:
        assert abs(row["clock_offset_ns"]) <= row["clock_error_ns"] + 100_000, row
        assert row["clock_error_ns"] < 20_000_000
        assert row["cut"] <= row["transactions"] / 2
    assert sessions_of(counted) == 0


def sessions_of(conn: Counted) -> int:
    """Return the number of sessions of the load that are open at the server."""
    row = conn.execute("select count(*) from pg_stat_activity where application_name like 'dbdyno%'").fetchone()
    return row[0] if row else 0


def wait_for_load(rows: Callable[[], int]) -> None:
    """Wait until more transactions are counted: between two blocks, the load pauses longer than a poll takes."""
    before = rows()
    assert until(lambda: rows() > before, pause_s=0.01)


def rows_counted(conn: Counted) -> int:
    (found,) = conn.execute("select count(*) from counted").fetchone() or (0,)
    return found


def test_what_cannot_be_spread_is_an_error_before_the_load(
    two: Cluster, desk: Desk, dsn: str, counted: Counted
) -> None:
    said = desk("run", written(desk, dsn, sessions=1), "--scheduler", two.address, code=2)
    assert "1 session cannot be shared by 2 hosts" in said
    said = desk("run", "redo-size", "--scheduler", two.address, code=2)
    assert "an embedded engine answers only on this machine" in said
    assert not (desk.folder / "runs").exists()
    assert counted.execute("select count(*) from counted").fetchone() == (0,)


def test_open_loops_share_the_rate(two: Cluster, desk: Desk, dsn: str, counted: Counted) -> None:
    plan = written(desk, dsn, sessions=6, load="rate_per_s = 300")
    desk("run", plan, "--scheduler", two.address, "--out", "runs", "--seed", "3")
    hosts = [row for block in block_records(desk.run("runs")) for row in block["report"]["hosts"]]  # type: ignore[index]
    done = sum(row["transactions"] for row in hosts)
    assert counted.execute("select count(*) from counted").fetchone() == (done,)
    assert done == pytest.approx(300 * 3 * 0.8, rel=0.25)  # three blocks of two arms, 400 ms each


class Begun:
    """A run of many blocks in its own process, and what the tests inspect of it."""

    def __init__(self, desk: Desk, dsn: str, found: Cluster, blocks: int = 12) -> None:
        plan = written(desk, dsn, blocks=blocks)
        self.desk = desk
        self.said = desk.folder / "said"
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "dbdyno", "run", plan, "--out", "runs", "--scheduler", found.address],
                cwd=desk.folder,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env={**os.environ, "PYTHONWARNINGS": "ignore"},
            )
        assert until(lambda: len(list((desk.folder / "runs").glob("*/blocks/*.json"))) >= 2, pause_s=0.1)

    def status(self) -> str:
        return str(json.loads((self.desk.run("runs") / "manifest.json").read_text())["status"])


@pytest.mark.soak
def test_a_killed_worker_ends_the_block_and_not_the_run(desk: Desk, dsn: str, counted: Counted, tmp_path: Path) -> None:
    with cluster(tmp_path, 2) as found:
        run = Begun(desk, dsn, found)
        wait_for_load(lambda: rows_counted(counted))
        found.kill(found.workers[0])
        add_worker(found, tmp_path, "worker-9")
        assert run.process.wait(180) in (0, 1), run.said.read_text()
        ended(found.workers[-1])
    assert run.status() == "complete"
    records = block_records(desk.run("runs"))
    assert {row["host"] for row in records[-1]["report"]["hosts"]} == {"worker-1", "worker-9"}  # type: ignore[index]
    assert any("run again" in mark for record in records for mark in record["marks"])  # type: ignore[attr-defined]
    assert sessions_of(counted) == 0


@pytest.mark.soak
def test_a_killed_runner_leaves_no_session(desk: Desk, dsn: str, counted: Counted, tmp_path: Path) -> None:
    with cluster(tmp_path, 2) as found:
        run = Begun(desk, dsn, found)
        assert sessions_of(counted) > 0
        run.process.send_signal(signal.SIGKILL)
        run.process.wait(20)
        assert until(lambda: sessions_of(counted) == 0, 30)


@pytest.mark.soak
def test_a_killed_scheduler_ends_the_run_which_another_one_finishes(
    desk: Desk, dsn: str, counted: Counted, tmp_path: Path
) -> None:
    with cluster(tmp_path, 2) as found:
        run = Begun(desk, dsn, found)
        found.kill(found.scheduler)
        assert run.process.wait(180) == 2
        assert until(lambda: sessions_of(counted) == 0, 30)
    assert run.status() == "aborted"
    with cluster(tmp_path, 2) as found:
        words = ("run", "--resume", "last", "--out", "runs", "--scheduler", found.address)
        done = dbdyno(*words, cwd=desk.folder, PGPASSWORD=psycopg.conninfo.conninfo_to_dict(dsn)["password"])
        assert done.returncode in (0, 1), done.stderr
    assert run.status() == "complete"


def test_a_host_with_a_moved_clock_is_in_the_same_slices(
    two: Cluster, desk: Desk, dsn: str, counted: Counted, tmp_path: Path
) -> None:
    shim, seconds = tmp_path / "shim.so", tmp_path / "seconds"
    source = Path(__file__).parents[1] / "lab" / "clock_shim.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", str(source), "-o", str(shim), "-ldl"], check=True)
    seconds.write_text("3")
    add_worker(two, tmp_path, "moved", {"LD_PRELOAD": str(shim), "CLOCK_SHIM": str(seconds)})
    try:
        done = dbdyno("run", written(desk, dsn), "--out", "runs", "--scheduler", two.address, cwd=desk.folder)
    finally:
        ended(two.workers.pop())
    assert done.returncode in (0, 1), done.stderr
    (rows,) = counted.execute("select count(*) from counted").fetchone() or (0,)
    run = desk.run("runs")
    spans = (
        duckdb.connect()
        .execute(
            f"select block, host, min(started_ns), count(*) from read_parquet('{run}/calls/*.parquet')"
            " where kind = 'transaction' group by all"
        )
        .fetchall()
    )
    assert sum(count for *_, count in spans) == rows
    for record in block_records(run):
        moved = next(row for row in record["report"]["hosts"] if row["host"] == "moved")  # type: ignore[index]
        assert moved["clock_offset_ns"] == pytest.approx(3e9, abs=moved["clock_error_ns"] + 1e6)
        begins = [at for block, _, at, _ in spans if block == record["index"]]
        assert len(begins) == 3
        assert max(begins) - min(begins) < 1_000_000_000  # a busy machine starts a host's sessions late


@pytest.mark.soak
def test_two_thousand_sessions_over_four_hosts_lose_no_call(desk: Desk, tmp_path: Path) -> None:
    with EmbeddedPostgres(settings={"max_connections": "4100"}) as own, cluster(tmp_path, 4) as found:
        dsn = make_conninfo("", **own.tcp_conninfo())
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("create table counted (n int)")
            plan = written(desk, dsn, sessions=2_000)
            text = (desk.folder / plan).read_text()
            text = text.replace('turn = "400ms"', 'turn = "2s"').replace('slice = "100ms"', 'slice = "1s"')
            (desk.folder / plan).write_text(text)
            done = dbdyno("run", plan, "--out", "runs", "--scheduler", found.address, cwd=desk.folder)
            assert done.returncode in (0, 1), done.stderr
            (rows,) = conn.execute("select count(*) from counted").fetchone() or (0,)
    run = desk.run("runs")
    assert duckdb.connect().execute(
        f"select count(*), count(distinct host) from read_parquet('{run}/calls/*.parquet') where kind = 'transaction'"
    ).fetchone() == (rows, 4)


def test_the_log_of_a_worker_has_no_line_for_each_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    log, handler = logging.getLogger("distributed.worker"), BufferingHandler(10)
    monkeypatch.setattr(log, "filters", [])
    monkeypatch.setattr(log, "handlers", [handler])
    monkeypatch.setattr(log, "disabled", False)
    log.setLevel(logging.INFO)
    drop_renewals_from_log()
    drop_renewals_from_log()
    for name in ("renew_load", "stop_load"):
        log.info("Run out-of-band function %r", name)
    assert [record.getMessage() for record in handler.buffer] == ["Run out-of-band function 'stop_load'"]
    assert len(log.filters) == 1
