"""Tests of moves on a real Spark: a standalone cluster with a master and two workers on this machine."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from move_lab import Lab

from command_line import dbdyno, succeeded
from dbdyno.bench.engine.server_paths import free_port
from dbdyno.move.ledger.folder import Ledger
from waiting import until

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark not found; make soak installs it"),
]
START_S = 120.0


class Cluster:
    """A master and two workers, each in its own process group."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"spark://127.0.0.1:{free_port()}"
        self.all: list[subprocess.Popen[bytes]] = []

    def begin(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        import pyspark

        program = Path(str(pyspark.__file__)).parent / "bin" / "spark-class"
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(self.folder / name)}
        with (self.folder / f"{name}.log").open("wb") as log:
            started = subprocess.Popen(
                [str(program), *words], stdout=log, stderr=log, env=environment, start_new_session=True
            )
        self.all.append(started)
        return started

    def until(self, name: str, words: str) -> None:
        log = self.folder / f"{name}.log"
        assert until(lambda: words in log.read_text(), START_S), log.read_text()

    def __enter__(self) -> Cluster:
        port = self.url.rpartition(":")[2]
        own = ("--host", "127.0.0.1", "--webui-port", "0")
        self.begin("master", "org.apache.spark.deploy.master.Master", *own, "--port", port)
        self.until("master", "I have been elected leader")
        for name in ("one", "two"):
            self.begin(name, *self.worker())
            self.until(name, "Successfully registered with master")
        return self

    def worker(self) -> tuple[str, ...]:
        """Return the command that starts a worker."""
        share = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g")
        return ("org.apache.spark.deploy.worker.Worker", *share, self.url)

    def __exit__(self, *ending: object) -> None:
        for process in self.all:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def lose_a_worker(self) -> None:
        """Kill a worker with its executor, as when its machine is switched off."""
        os.killpg(self.all[-1].pid, signal.SIGKILL)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Start a cluster for one test, which ends one of its workers."""
    with Cluster(tmp_path) as made:
        yield made


def finished(lab: Lab) -> int:
    return len(list((lab.out / "_dbdyno" / "chunks").glob("*.json")))


def test_a_worker_that_is_lost_in_the_middle_loses_and_doubles_nothing(lab: Lab, cluster: Cluster) -> None:
    lab.run("create table t as select g as id, md5(g::text) as x from generate_series(1, 400000) g")
    words: list[Any] = [
        *(sys.executable, "-m", "dbdyno", "move", lab.dsn, "--to", lab.out, "--table", "t", "--piece", "1MiB"),
        *("--engine", "spark", "--master", cluster.url, "--workers", "4"),
        *("--rate-limit", "1MB/s", "--verify", "source"),
    ]
    log = (lab.folder / "said").open("wb")
    with log:
        process = subprocess.Popen(list(map(str, words)), stdout=log, stderr=log)
        until(lambda: finished(lab) >= 3 or process.poll() is not None, 300, pause_s=0.1)
        kept = finished(lab)
        cluster.lose_a_worker()
        # Written while the job runs: its snapshot does not see it.
        lab.run("update t set id = -id where id % 100 = 0", "insert into t select 0, 'new'")
        process.wait(400)
    said = (lab.folder / "said").read_text()
    assert process.returncode == 0, said
    assert "the source, read again in the same snapshot, gave the same rows" in said
    assert 3 <= kept < len(Ledger.open(lab.out).plan["chunks"]), kept
    assert lab.files("count(*), count(distinct id), sum(id), min(id)") == [(400000, 400000, 400000 * 400001 // 2, 1)]
    assert dbdyno("move", "verify", lab.out).returncode == 0


def below(pids: set[int]) -> list[int]:
    """Return all descendants of some processes: executors, their Python daemons, and the processes of our reader."""
    parents: dict[int, int] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
    found: list[int] = []
    layer = pids
    while layer:
        layer = {pid for pid, parent in parents.items() if parent in layer}
        found += sorted(layer)
    return found


def test_20_kills_under_the_workers_of_spark_lose_and_double_nothing(lab: Lab, cluster: Cluster) -> None:
    """Kill executors, their Python processes and whole workers at random; a job that Spark abandons is resumed."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    lab.run("create table t as select g as id, md5(g::text) as x from generate_series(1, 200000) g")
    kills = jobs = given_up = 0
    while kills < 20:
        jobs += 1
        lab.out = lab.folder / f"out{jobs}"
        words = [sys.executable, "-m", "dbdyno", "move", lab.dsn, "--to", str(lab.out), "--table", "t"]
        words += ["--piece", "512KiB", "--engine", "spark", "--master", cluster.url, "--workers", "2"]
        process = subprocess.Popen(
            [*words, "--rate-limit", "500KB/s"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        end = time.monotonic() + 300
        while finished(lab) < 1 and process.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
        for _ in range(5):
            time.sleep(rng.random() * 3)
            victims = below({one.pid for one in cluster.all[1:] if one.poll() is None})
            if process.poll() is not None or not victims:
                break
            if rng.random() < 0.15:
                cluster.lose_a_worker()
                cluster.all[-1].wait()
                cluster.begin(f"again{kills}", *cluster.worker())
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(rng.choice(victims), signal.SIGKILL)
            kills += 1
        said = process.communicate(timeout=400)[1].decode()
        if process.returncode:
            given_up += 1
            assert "Traceback" not in said, said
            succeeded("move", "resume", lab.out, "--source", lab.dsn, "--as-of-now")
        assert lab.files("count(*), count(distinct id), sum(id)") == [(200000, 200000, 200000 * 200001 // 2)], seed
        assert dbdyno("move", "verify", lab.out).returncode == 0
    print(f"{kills} kills in {jobs} jobs, {given_up} of them given up by Spark")


def test_a_cluster_that_is_not_there_leaves_a_job_that_goes_on_here(lab: Lab) -> None:
    lab.run("create table t as select g as id from generate_series(1, 1000) g")
    # A process of its own: pyspark leaves a pipe open where its JVM ends early.
    words = [sys.executable, "-m", "dbdyno", "move", lab.dsn, "--to", str(lab.out), "--table", "t", "--engine", "spark"]
    words += ["--master", f"nonsense://127.0.0.1:{free_port()}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, "Spark cannot start a session: " in done.stderr) == (2, True), done.stderr
    succeeded("move", "resume", lab.out, "--source", lab.dsn)
    assert lab.files("count(*)") == [(1000,)]
