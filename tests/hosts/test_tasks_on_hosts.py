"""Tasks on the workers of a scheduler give the same results as on one machine."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cluster import Cluster, cluster, fail, watched_tasks

from calibrated import CALIBRATED
from conftest import Desk
from dbdyno.base.errors import DeviceError, TargetError
from dbdyno.base.version import VERSION
from dbdyno.cuts.campaign import run_campaign
from dbdyno.cuts.plan import plan_of
from dbdyno.device.mounts import check_machine
from dbdyno.hosts import workers as workers_module
from dbdyno.hosts.workers import open_workers
from skipped import skipped_on
from waiting import until

CLOCKED = {"seconds", "recovery_s", "oldest_lost_ms"}
"""Results that depend on a real clock."""
PATIENCE_S = 600
"""Time for a run of some minutes of processor time on a busy machine [s]."""


def test_a_run_on_a_model_has_the_same_parts_to_the_byte(two: Cluster, desk: Desk) -> None:
    desk("run", desk.plan(), "--seed", "7", "--out", "here", code=0)
    desk("run", desk.plan(), "--seed", "7", "--out", "there", "--scheduler", two.address)
    assert desk.parts("here")
    assert desk.parts("here") == desk.parts("there")


def test_a_race_ends_alike_although_its_blocks_are_started_ahead(two: Cluster, desk: Desk) -> None:
    desk("tune", desk.plan(blocks=8), "--seed", "7", "--out", "here")
    desk("tune", desk.plan(blocks=8), "--seed", "7", "--out", "there", "--scheduler", two.address)
    here, there = ([_raced(run) for run in sorted((desk.folder / at).iterdir())] for at in ("here", "there"))
    assert here == there
    assert any(race for race, _ in here)


def _raced(run: Path) -> tuple[object, dict[str, bytes]]:
    manifest = json.loads((run / "manifest.json").read_text())
    return manifest.get("race"), {str(part.relative_to(run)): part.read_bytes() for part in run.rglob("*.parquet")}


def test_claims_have_the_same_values(two: Cluster, desk: Desk) -> None:
    words = ("model", "claims", "--only", "N11", "--replications", "2", "--most", "2", "--format", "json")
    here, there = (json.loads(_stdout(desk, *words, *more)) for more in ((), ("--scheduler", two.address)))
    assert _unclocked(here) == _unclocked(there)


def test_the_sensitivity_of_a_machine_is_the_same_to_the_byte(two: Cluster, desk: Desk) -> None:
    (desk.folder / "mine.toml").write_text(CALIBRATED)
    words = ("model", "sensitivity", "mine.toml", "--sessions", "2", "--trajectories", "2", "--format", "json")
    here, there = (_stdout(desk, *words, *more) for more in ((), ("--scheduler", two.address)))
    assert here == there
    assert len(json.loads(here)["rows"]) > 3


def _stdout(desk: Desk, *words: str) -> str:
    done = desk(*words)
    return done[done.index("{") : done.rindex("}") + 1]


def _unclocked(value: object) -> object:
    if isinstance(value, dict):
        return {key: _unclocked(own) for key, own in value.items() if key not in CLOCKED}
    return [_unclocked(own) for own in value] if isinstance(value, list) else value


def test_power_cuts_of_two_databases_are_those_of_one_machine(two: Cluster) -> None:
    plan = replace(plan_of("sqlite-full"), cuts_of_a_database=2)
    with skipped_on(DeviceError):
        check_machine()
    here = run_campaign(plan, 3, 7)
    with open_workers(two.address) as workers:
        there = run_campaign(plan, 3, 7, workers=workers)
    assert [_unclocked(dict(row)) for row in here.rows] == [_unclocked(dict(row)) for row in there.rows]


def test_what_cannot_be_spread_says_so_before_it_begins(two: Cluster, desk: Desk) -> None:
    said = desk("run", "threads", "--target", "host", "--scheduler", two.address, "--out", "none", code=2)
    assert "cannot be spread over many hosts" in said
    assert "leave --scheduler, --hosts and the plan's hosts out" in said
    assert not (desk.folder / "none").exists()


def test_an_error_of_a_task_is_the_error_of_the_command(two: Cluster) -> None:
    with open_workers(two.address) as workers, pytest.raises(TargetError, match="planted") as raised:
        workers.submit(fail).result()
    assert raised.value.next_step == "do better"


def test_too_few_workers_and_another_version_are_errors(two: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TargetError, match="has 2 workers, but 3 are needed"), open_workers(two.address, least=3):
        pass
    monkeypatch.setattr(workers_module, "VERSION", "9.9.9")
    with pytest.raises(TargetError, match=f"the worker has dbdyno {VERSION}"), open_workers(two.address):
        pass


def test_addresses_that_are_none_are_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_module, "CONNECT_S", 0.5)
    assert "is not the address of a scheduler" in desk("run", desk.plan(), "--scheduler", "desk", code=2)
    assert "does not answer" in desk("run", desk.plan(), "--scheduler", "tcp://127.0.0.1:9", code=2)
    both = desk("run", desk.plan(), "--scheduler", "tcp://127.0.0.1:9", "--hosts", "a", code=2)
    assert "--scheduler and --hosts exclude each other" in both


@contextlib.contextmanager
def begun(desk: Desk, folder: Path) -> Iterator[tuple[Cluster, subprocess.Popen[bytes]]]:
    """Start a cluster of two workers and a run on it that has a whole block."""
    plan = desk.plan(blocks=12, transactions=20_000)
    command = [sys.executable, "-m", "dbdyno", "run", plan, "--seed", "7", "--out", "there"]
    with cluster(folder, 2) as found:
        process = subprocess.Popen(
            [*command, "--scheduler", found.address],
            cwd=desk.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
        assert until(lambda: list((desk.folder / "there").glob("*/blocks/*.json")), 60, pause_s=0.05)
        yield found, process


@pytest.mark.soak
def test_a_killed_worker_costs_nothing_but_time(desk: Desk, tmp_path: Path) -> None:
    with begun(desk, tmp_path) as (found, process):
        found.kill(found.workers[0])
        assert process.wait(PATIENCE_S) == 0
    desk("run", "p.toml", "--seed", "7", "--out", "here")
    assert desk.parts("here") == desk.parts("there")


@pytest.mark.soak
def test_a_killed_scheduler_ends_the_run_which_is_finished_elsewhere(desk: Desk, tmp_path: Path) -> None:
    with begun(desk, tmp_path) as (found, process):
        found.kill(found.scheduler)
        assert process.wait(PATIENCE_S) == 2
        for worker in found.workers:  # without their scheduler they end, too
            worker.wait(60)
    assert json.loads((desk.run("there") / "manifest.json").read_text())["status"] == "aborted"
    with cluster(tmp_path, 2) as found:
        desk("run", "--resume", "last", "--out", "there", "--scheduler", found.address)
    desk("run", "p.toml", "--seed", "7", "--out", "here")
    assert desk.parts("here") == desk.parts("there")


@pytest.mark.soak
def test_a_killed_runner_leaves_no_task_running(desk: Desk, tmp_path: Path) -> None:
    with begun(desk, tmp_path) as (found, process):
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        with open_workers(found.address) as workers:
            idle = until(lambda: not any(workers.run_on_all(watched_tasks).values()), 20)
            assert idle, "a worker still runs a block that nobody waits for"
