"""Tests on a Hadoop file system: HDFS with one name node and one data node, in one process on this machine."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from move_lab import Lab
from test_move_spark import Cluster, cluster  # noqa: F401 (a fixture)

from command_line import dbdyno, succeeded
from dbdyno.move.ledger.folder import Ledger
from waiting import until

JARS = Path(__file__).parents[2] / "target" / "wide" / "hdfs" / "lib"
START_S = 400.0
SUMS = [(200000, 200000, 200000 * 200001 // 2, 1)]


def test_a_place_needs_pyspark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ("move", "postgresql://me@127.0.0.1:1/db", "--table", "t", "--to", "hdfs://127.0.0.1:1/t")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "py4j.java_gateway", None)
    done = dbdyno(*words, "--job", tmp_path / "job")
    assert (done.returncode, "a Hadoop file system: cannot be used: PySpark is not installed" in done.stderr) == (
        2,
        True,
    ), done.stderr
    assert not (tmp_path / "job").exists()


def on_hdfs(test: Any) -> Any:
    """Mark a test for the soak; skip it without Hadoop."""
    no_spark = importlib.util.find_spec("pyspark") is None
    test = pytest.mark.skipif(no_spark, reason="pyspark not found; make soak installs it")(test)
    test = pytest.mark.skipif(not JARS.is_dir(), reason="Hadoop's HDFS not found; make setup-wide gets it")(test)
    return pytest.mark.soak(test)


class Hdfs:
    """The file system and its contents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        words = ["java", "-cp", f"{JARS}/*", str(Path(__file__).with_name("MiniHdfs.java")), str(folder / "hdfs")]
        with (folder / "hdfs.log").open("wb") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        end, said = time.monotonic() + START_S, b""
        while b"\n" not in said:
            assert time.monotonic() < end and self.process.poll() is None, (folder / "hdfs.log").read_text()[-3000:]
            said += self.process.stdout.read() or b""
            time.sleep(0.1)
        self.url = said.decode().strip()

    def end(self) -> None:
        """End the file system abruptly, as when its machine is switched off."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def files(self, place: str) -> list[str]:
        """Return all file names, listed by Hadoop's own client."""
        from dbdyno.move.spark.files import Hadoop

        return sorted(Hadoop(f"{self.url}/{place}").sizes())

    def rows(self, place: str) -> list[tuple[Any, ...]]:
        """Return count, distinct keys, sum and minimum of the column `id` over all files, by DuckDB."""
        from dbdyno.move.spark.files import Hadoop

        local = self.folder / f"seen-{place}"
        local.mkdir(exist_ok=True)
        for name in self.files(place):
            Hadoop(f"{self.url}/{place}").get(name, local / name.replace("/", "_"))
        with contextlib.closing(duckdb.connect()) as conn:
            query = f"select count(*), count(distinct id), sum(id), min(id) from read_parquet('{local}/*.parquet')"
            return conn.execute(query).fetchall()


@pytest.fixture
def hdfs(tmp_path: Path) -> Iterator[Hdfs]:
    """Start a file system for one test."""
    made = Hdfs(tmp_path)
    try:
        yield made
    finally:
        made.end()


@pytest.fixture
def rows(lab: Lab) -> Lab:
    """Create a table of 200,000 rows."""
    lab.run("create table t as select g as id, md5(g::text) as x from generate_series(1, 200000) g")
    return lab


def recorded(job: Path) -> int:
    return len(list((job / "_dbdyno" / "chunks").glob("*.json")))


def abort(job: Path, hdfs: Hdfs) -> None:
    """Abort a job as if it still ran, which leaves no file."""
    ledger = Ledger.open(job)
    ledger.manifest["status"] = "running"
    ledger.save()
    assert dbdyno("move", "abort", job).returncode == 0
    assert hdfs.files("t") == []


@on_hdfs
def test_a_kill_in_the_middle_loses_and_doubles_nothing(rows: Lab, hdfs: Hdfs) -> None:
    job = rows.folder / "job"
    words = [*(sys.executable, "-m", "dbdyno", "move", rows.dsn, "--table", "t", "--piece", "1MiB", "--rate-limit")]
    process = subprocess.Popen([*words, "2MB/s", "--to", f"{hdfs.url}/t", "--job", str(job)], stderr=subprocess.PIPE)
    until(lambda: recorded(job) >= 2 or process.poll() is not None, 120, pause_s=0.05)
    process.send_signal(signal.SIGKILL)
    assert process.communicate()[1] is not None
    kept = recorded(job)
    assert 2 <= kept < len(Ledger.open(job).plan["chunks"])
    assert "Files: hdfs://" in dbdyno("move", "status", job).stdout
    succeeded("move", "resume", job, "--source", rows.dsn, "--as-of-now", "--verify", "source")
    assert hdfs.rows("t") == SUMS
    assert len(hdfs.files("t")) == len(Ledger.open(job).plan["chunks"])
    assert "the files, read again, hold exactly those rows" in dbdyno("move", "verify", job).stdout
    from dbdyno.move.spark.files import Hadoop

    Hadoop(f"{hdfs.url}/t").delete(hdfs.files("t")[0])
    lost = dbdyno("move", "verify", job)
    assert (lost.returncode, "does not exist" in lost.stdout + lost.stderr) == (2, True), lost.stdout


@on_hdfs
@pytest.mark.parametrize("engine", ["here", "spark"])
def test_folders_of_values_stand_there_and_nothing_that_a_killed_task_left_in_others(
    rows: Lab, hdfs: Hdfs, engine: str
) -> None:
    job = rows.folder / "job"
    rows.run(
        "create table p as select *, case id % 3 when 0 then null when 1 then 'a:b%' else 'c' end as day from t",
        "drop table t",
        "alter table p rename to t",
    )
    words: list[Any] = ["move", rows.dsn, "--to", f"{hdfs.url}/t", "--job", job, "--piece", "1MiB"]
    words += ["--table", "t", "--partition-by", "day"]
    words += ["--engine", "spark", "--master", "local[2]"] if engine == "spark" else []
    succeeded(*words, "--verify", "files")
    folders = {name.rpartition("/")[0] for name in hdfs.files("t")}
    assert folders == {"day=a%3Ab%25", "day=c", "day=__HIVE_DEFAULT_PARTITION__"}
    assert hdfs.rows("t") == SUMS
    # As a kill leaves it: a chunk without its record, and a file of it for a value that it has no rows of.
    from dbdyno.move.spark.files import Hadoop

    ledger = Ledger.open(job)
    (job / "_dbdyno" / "chunks" / "00001.json").unlink()
    ledger.manifest["status"] = "running"
    ledger.save()
    there = Hadoop(f"{hdfs.url}/t")
    there.get("day=c/part-00001.parquet", rows.folder / "left.parquet")
    there.put(rows.folder / "left.parquet", "day=gone/part-00001.parquet")
    succeeded("move", "resume", job, "--source", rows.dsn, "--as-of-now", "--verify", "source")
    assert {name.rpartition("/")[0] for name in hdfs.files("t")} == folders
    assert hdfs.rows("t") == SUMS
    abort(job, hdfs)


@on_hdfs
def test_a_task_that_runs_twice_leaves_one_file(rows: Lab, hdfs: Hdfs) -> None:
    """Read one chunk twice by the executor's reader and the driver's snapshot, as Spark does when it repeats a task."""
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.engines.postgres.source import Request, take_snapshot
    from dbdyno.move.reading.run import JobOptions, Reading, job_spec, new_id, plan_of
    from dbdyno.move.spark.job import read_chunk

    source, how = Postgres.open(rows.dsn), JobOptions()
    with take_snapshot(source, Request(tables=["t"]), new_id()) as snapshot:
        plan = plan_of(source, snapshot, new_id(), how)
        spec = job_spec(Reading(source, plan, plan.chunks[:1], snapshot, how, Path()))
        task = {**spec, "workers": 1, "hadoop": {"place": f"{hdfs.url}/twice", "settings": {}}}
        rows.run("update t set id = -id")
        first, second = read_chunk(task), read_chunk(task)
    assert first["done"]["hash"] == second["done"]["hash"]
    assert hdfs.files("twice") == ["part-00000.parquet"]
    assert hdfs.rows("twice")[0][0] == first["done"]["rows"]


@on_hdfs
def test_a_worker_of_spark_that_is_lost_loses_and_doubles_nothing(
    rows: Lab,
    hdfs: Hdfs,
    cluster: Cluster,  # noqa: F811 (the fixture)
) -> None:
    job = rows.folder / "job"
    words = [
        *(sys.executable, "-m", "dbdyno", "move", rows.dsn, "--to", f"{hdfs.url}/t", "--job", str(job), "--table", "t"),
        *("--piece", "1MiB", "--engine", "spark", "--master", cluster.url, "--workers", "2", "--rate-limit", "1MB/s"),
    ]
    with (rows.folder / "said").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    until(lambda: recorded(job) >= 2 or process.poll() is not None, 300, pause_s=0.1)
    kept = recorded(job)
    cluster.lose_a_worker()
    process.wait(400)
    said = (rows.folder / "said").read_text()
    assert process.returncode == 0, said
    assert 2 <= kept < len(Ledger.open(job).plan["chunks"]), kept
    assert hdfs.rows("t") == SUMS
    assert len(hdfs.files("t")) == len(Ledger.open(job).plan["chunks"])
    assert dbdyno("move", "verify", job).returncode == 0


@on_hdfs
def test_a_file_system_that_is_lost_is_one_error_and_an_aborted_job_leaves_nothing(rows: Lab, hdfs: Hdfs) -> None:
    job = rows.folder / "job"
    assert dbdyno("move", rows.dsn, "--table", "t", "--to", f"{hdfs.url}/t", "--job", job).returncode == 0
    abort(job, hdfs)
    hdfs.end()
    words = ("move", rows.dsn, "--table", "t", "--to", f"{hdfs.url}/again", "--job", rows.folder / "again")
    done = dbdyno(*words)
    assert (done.returncode, "Hadoop says: " in done.stderr) == (2, True), done.stderr
    assert not (rows.folder / "again").exists()
