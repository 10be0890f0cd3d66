"""Loads from hosts on separate networks, with delays, shifted clocks and cuts; the server counts the transactions."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from networked import Lab, lab, rows_of
from test_load_on_hosts import LOAD, block_records, sessions_of

from conftest import Desk
from dbdyno.base.json_types import TableRow
from dbdyno.evidence.run import Run
from dbdyno.study.analysis.analyse import analysis_of
from waiting import until

HOSTS = 4
CLOCKS_S = (-0.5, -0.123, 0.25, 0.5)
DRIFTS_PPM = (50.0, -50.0, 0.0, 100.0)
SLEEPS = """\
title = "a planted difference"
[target]
dsn = "%s"
[workload]
scripts = [{name = "sleep", text = '''select pg_sleep(:us / 1000000.0);'''}]
[load]
sessions = 4
[schedule]
blocks = %d
warmup_blocks = 1
turn = "500ms"
slice = "250ms"
[watch]
overhead_blocks = 0
activity_hz = 0
[verdict]
metric = "p50"
[[arm]]
name = "base"
variables = {us = 10000}
[[arm]]
name = "planted"
variables = {us = %d}
"""


def plan_of(desk: Desk, text: str) -> str:
    (desk.folder / "plan.toml").write_text(text)
    return "plan.toml"


def connected(found: Lab) -> psycopg.Connection[Any]:
    return psycopg.connect(**found.server.conninfo(), autocommit=True)  # type: ignore[arg-type]


def load_sessions(conn: psycopg.Connection[Any]) -> int:
    """Return the number of the arms' sessions, without those of the runner and the guardian."""
    row = conn.execute("select count(*) from pg_stat_activity where application_name like 'dbdyno/%'").fetchone()
    return int(row[0]) if row else 0


def check_calls(run: Path, counted: int, hosts: int) -> list[dict[str, Any]]:
    """Check that each transaction is in evidence once, with its host; return the record of each host in each block."""
    (found,) = rows_of(run, "select count(*), count(distinct host) from calls where kind = 'transaction'")
    assert found == (counted, hosts)
    rows = [row for block in block_records(run) for row in block["report"]["hosts"]]  # type: ignore[index]
    assert sum(row["transactions"] for row in rows) == counted
    return rows


def check_clocks(rows: list[TableRow], clocks_s: tuple[float, ...], drifts_ppm: tuple[float, ...]) -> None:
    """Check that each offset is the planted one, within its error and the clock's drift in five minutes."""
    for row in rows:
        number = int(row["host"].removeprefix("host-")) - 1
        drifted_ns = abs(drifts_ppm[number]) * 1e-6 * 300e9 if drifts_ppm else 0
        apart_ns = abs(row["clock_offset_ns"] - clocks_s[number] * 1e9)
        assert apart_ns <= row["clock_error_ns"] + drifted_ns + 200_000, row


@pytest.mark.soak
def test_calls_over_a_slow_network_with_moved_clocks_are_those_of_the_server(desk: Desk, tmp_path: Path) -> None:
    clocks_s = (-0.5, 0.5)
    with lab(tmp_path, 2) as found, connected(found) as conn:
        for host in (1, 2):
            found.network.delay(host, 0.001)
        conn.execute("create table counted (n int)")
        found.start_workers(2, clocks_s=clocks_s)
        found.spread(plan_of(desk, LOAD % (found.server.dsn(), 4, "", 2)), "--out", "runs", cwd=desk.folder)
        (counted,) = conn.execute("select count(*) from counted").fetchone() or (0,)
        assert sessions_of(conn) == 0
    assert counted > 50
    rows = check_calls(desk.run("runs"), counted, 2)
    check_clocks(rows, clocks_s, ())
    assert all(row["clock_error_ns"] >= 1_000_000 for row in rows)  # half a round trip is not known


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(tmp_path_factory.mktemp("lab"), HOSTS) as found:
        found.start_workers(HOSTS, clocks_s=CLOCKS_S, drifts_ppm=DRIFTS_PPM)
        yield found


def slow(found: Lab, seconds: float) -> None:
    for host in range(1, HOSTS + 1):
        found.network.delay(host, seconds)


@pytest.mark.soak
@pytest.mark.parametrize("delay_ms", [0, 1, 10])
def test_known_loads_over_four_hosts_are_exact(four: Lab, desk: Desk, delay_ms: int) -> None:
    slow(four, delay_ms / 1000)
    with connected(four) as conn:
        conn.execute("drop table if exists counted")
        conn.execute("create table counted (n int)")
        text = (LOAD % (four.server.dsn(), 16, "", 6)).replace('"400ms"', '"2s"').replace('"100ms"', '"500ms"')
        four.spread(plan_of(desk, text), "--out", "runs", cwd=desk.folder)
        (counted,) = conn.execute("select count(*) from counted").fetchone() or (0,)
        assert sessions_of(conn) == 0
    rows = check_calls(desk.run("runs"), counted, HOSTS)
    check_clocks(rows, CLOCKS_S, DRIFTS_PPM)
    cut = sum(row["cut"] for row in rows) / counted
    errors = sorted(row["clock_error_ns"] for row in rows)
    drifts = [abs(row["clock_drift_ppm"] - DRIFTS_PPM[int(row["host"].removeprefix("host-")) - 1]) for row in rows]
    print(
        f"\n{delay_ms} ms: {counted:,} calls, all there; cut {100 * cut:.2f} %; clock error"
        f" {errors[len(errors) // 2] / 1e3:.0f} us (median), {errors[-1] / 1e3:.0f} us (most);"
        f" drift {sorted(drifts)[len(drifts) // 2]:.1f} ppm off (median)"
    )


@pytest.mark.soak
def test_the_calls_are_those_that_the_server_counts_by_statement(desk: Desk, tmp_path: Path) -> None:
    with lab(tmp_path, HOSTS, shared_preload_libraries="pg_stat_statements") as found, connected(found) as conn:
        slow(found, 0.001)
        conn.execute("create extension pg_stat_statements")
        conn.execute("create table counted (n int)")
        found.start_workers(HOSTS, clocks_s=CLOCKS_S)
        found.spread(plan_of(desk, LOAD % (found.server.dsn(), 16, "", 4)), "--out", "runs", cwd=desk.folder)
        query = "select sum(calls) from pg_stat_statements where query like 'insert into counted%'"
        (counted,) = conn.execute(query).fetchone() or (0,)
    check_calls(desk.run("runs"), int(counted), HOSTS)


def difference_ms(model: Any) -> tuple[float, float, float]:
    """Return how much the second arm's median exceeds the first one's, and the ends of the interval [ms]."""
    (row,) = [row for row in model["metrics"] if row["metric"] == "p50" and row["arm"] == 1]
    base = row["base_value"] / 1e6
    return base * (row["ratio"] - 1), base * (row["low"] - 1), base * (row["high"] - 1)


@pytest.mark.soak
@pytest.mark.parametrize("delay_ms", [1, 10])
def test_a_planted_difference_is_found_as_on_one_machine(four: Lab, desk: Desk, delay_ms: int) -> None:
    slow(four, delay_ms / 1000)
    plan = plan_of(desk, SLEEPS % (four.server.dsn(), 12, 20_000))
    four.run("run", plan, "--out", "here", "--seed", "5", cwd=desk.folder)
    four.spread(plan, "--out", "there", "--seed", "5", cwd=desk.folder)
    found = [difference_ms(json.loads((desk.run(at) / "analysis.json").read_text())) for at in ("here", "there")]
    for name, (apart, low, high) in zip(("one machine", "four hosts"), found, strict=True):
        print(f"\n{delay_ms} ms, {name}: {apart:+.2f} ms, 95 % {low:+.2f} to {high:+.2f} ms (planted: +10 ms)")
        assert low > 0
        assert low - 2 <= 10 <= high + 2


def groups_of(run: Path, blocks: int, folder: Path) -> Iterator[Path]:
    """Yield groups of `blocks` consecutive measured blocks of a run, each as a run folder; no block is in two groups.

    A block's arms are in random order of its own, and the block is the unit of inference: each group is what a shorter
    run would have recorded.
    """
    measured = [file.stem for file in sorted((run / "blocks").glob("b*.json")) if '"measure"' in file.read_text()]
    for first in range(0, len(measured) - blocks + 1, blocks):
        group = folder / f"group-{first // blocks:03}"
        for name in measured[first : first + blocks]:
            for file in run.glob(f"*/{name}.*"):
                (group / file.parent.name).mkdir(parents=True, exist_ok=True)
                os.link(file, group / file.relative_to(run))
        shutil.copy(run / "manifest.json", group)
        yield group


BLOCKS_OF_A_VERDICT = 6


@pytest.mark.soak
@pytest.mark.parametrize(("hosts", "delay_ms"), [(4, 1), (2, 10)])
def test_two_equal_arms_are_said_to_differ_in_one_of_twenty(
    desk: Desk, tmp_path: Path, hosts: int, delay_ms: int
) -> None:
    pairs, seed = 60, random.randrange(1 << 20)
    with lab(tmp_path, hosts) as found:
        found.start_workers(hosts, clocks_s=CLOCKS_S[:hosts], drifts_ppm=DRIFTS_PPM[:hosts])
        for host in range(1, hosts + 1):
            found.network.delay(host, delay_ms / 1000)
        text = SLEEPS % (found.server.dsn(), pairs * BLOCKS_OF_A_VERDICT, 10_000)
        plan = plan_of(desk, text.replace('"500ms"', '"400ms"').replace("250", "200"))
        words: tuple[str, ...] = (plan, "--seed", str(seed))
        for _ in range(5):  # a busy machine may keep a host from its slices for longer than a run waits
            found.spread(*words, "--out", "runs", cwd=desk.folder, codes=(0, 1, 2), limit_s=5_000)
            words = ("--resume", "last")
            if json.loads((desk.run("runs") / "manifest.json").read_text())["status"] == "complete":
                break
    models = [analysis_of(Run.open(at)) for at in groups_of(desk.run("runs"), BLOCKS_OF_A_VERDICT, desk.folder)]
    assert len(models) == pairs
    # On a busy machine a block may have too few transactions for a median: such a pair has no figure, and no verdict.
    told = [model for model in models if all(row["base_value"] for row in model["metrics"] if row["metric"] == "p50")]
    assert len(told) >= pairs / 2
    spans = [difference_ms(model) for model in told]
    excluded = sum(not low <= 0 <= high for _, low, high in spans)
    called = sum(model["verdict"]["decision"] in ("faster", "slower") for model in models)
    widths = sorted(high - low for _, low, high in spans)
    print(
        f"\n{hosts} hosts, {delay_ms} ms, seed {seed}: of {pairs} A/A pairs of {BLOCKS_OF_A_VERDICT} blocks"
        f" {len(told)} have a figure, {excluded} a 95 % interval without 0, {called} a verdict; median width"
        f" {widths[len(told) // 2]:.2f} ms"
    )
    assert called <= excluded <= 9  # of 60 at 5 %: more come once in a thousand times


class Begun:
    """A run over the hosts in its own process, with two blocks so far."""

    def __init__(self, found: Lab, desk: Desk, plan: str) -> None:
        assert found.cluster is not None
        self.found, self.desk = found, desk
        words = ("run", plan, "--out", "runs", "--scheduler", found.cluster.address)
        self.process = found.begun(*words, cwd=desk.folder)
        self.wait_for(lambda: len(list((desk.folder / "runs").glob("*/blocks/b*.json"))) >= 2)

    def wait_for(self, condition: Callable[[], bool], limit_s: float = 200) -> None:
        assert until(condition, limit_s, pause_s=0.2), (self.desk.folder / "said").read_text()

    def cut(self, host: int) -> None:
        """Disconnect a host and wait until its worker has ended; after that, nothing of the run remains there."""
        assert self.found.cluster is not None
        self.found.network.cut(host)
        worker = self.found.cluster.workers[host - 1]
        self.wait_for(lambda: worker.poll() is not None)

    def heal(self, host: int) -> None:
        """Reconnect the host and restart its worker, as `dask worker` does by itself."""
        self.found.network.delay(host, 0.001)
        self.found.start_worker(host)

    def status(self) -> str:
        return str(json.loads((self.desk.run("runs") / "manifest.json").read_text())["status"])


@pytest.mark.soak
def test_a_partition_ends_the_block_and_not_the_run(desk: Desk, tmp_path: Path) -> None:
    with lab(tmp_path, 3) as found, connected(found) as conn:
        conn.execute("create table counted (n int)")
        found.start_workers(3)
        run = Begun(found, desk, plan_of(desk, LOAD % (found.server.dsn(), 6, "", 12)))
        run.cut(2)
        run.heal(2)
        assert run.process.wait(300) in (0, 1), (desk.folder / "said").read_text()
        run.wait_for(lambda: sessions_of(conn) == 0)
        (counted,) = conn.execute("select count(*) from counted").fetchone() or (0,)
    assert run.status() == "complete"
    records = block_records(desk.run("runs"))
    assert any("run again" in mark for record in records for mark in record["marks"])  # type: ignore[attr-defined]
    (kept,) = rows_of(desk.run("runs"), "select count(*) from calls where kind = 'transaction'")
    assert sum(row["transactions"] for one in records for row in one["report"]["hosts"]) == kept[0] <= counted  # type: ignore[index]


@pytest.mark.soak
def test_a_lasting_partition_leaves_nothing_altered_and_the_run_is_finished_later(desk: Desk, tmp_path: Path) -> None:
    with lab(tmp_path, 2) as found, connected(found) as conn:
        conn.execute("create table counted (n int)")
        before = found.server.read_auto_conf()
        found.start_workers(2)
        text = (LOAD % (found.server.dsn(), 4, "", 6)).replace("[workload]", "alter_system = true\n[workload]")
        run = Begun(found, desk, plan_of(desk, text + 'settings = {bgwriter_delay = "123ms"}\n'))
        run.cut(2)
        assert run.process.wait(300) == 2
        said = (desk.folder / "said").read_text()
        assert "this run began on 2 hosts, but now only 1 can be reached" in said
        assert run.status() == "aborted"
        assert found.server.read_auto_conf() == before
        assert conn.execute("show bgwriter_delay").fetchone() == ("200ms",)
        assert sessions_of(conn) == 0  # also none of the host that is still cut off
        run.heal(2)
        assert found.cluster is not None
        words = ("run", "--resume", "last", "--out", "runs", "--scheduler", found.cluster.address)
        found.run(*words, cwd=desk.folder)
        assert found.server.read_auto_conf() == before
    assert run.status() == "complete"
    records = block_records(desk.run("runs"))
    assert len(records) == 7
    assert all(len(record["report"]["hosts"]) == 2 for record in records)  # type: ignore[index]


@pytest.mark.soak
@pytest.mark.parametrize("altered", [False, True])
def test_a_cut_off_host_and_a_killed_runner_leave_no_session_and_nothing_altered(
    desk: Desk, tmp_path: Path, altered: bool
) -> None:
    """Without a setting the sessions of both arms are open, and the server sends nothing to those of the other one."""
    with lab(tmp_path, 2) as found, connected(found) as conn:
        conn.execute("create table counted (n int)")
        before = found.server.read_auto_conf()
        found.start_workers(2)
        text = LOAD % (found.server.dsn(), 4, "", 40)
        if altered:
            text = text.replace("[workload]", "alter_system = true\n[workload]")
            text += 'settings = {bgwriter_delay = "123ms"}\n'
        run = Begun(found, desk, plan_of(desk, text))
        run.wait_for(lambda: load_sessions(conn) > 0 and (found.server.read_auto_conf() != before) == altered)
        found.network.cut(2)
        run.process.kill()
        run.process.wait(20)
        run.wait_for(lambda: load_sessions(conn) == 0, 60)  # by the server's own keepalives, without the network
        run.wait_for(lambda: found.server.read_auto_conf() == before, 60)  # by the guardian
