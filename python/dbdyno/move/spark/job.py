"""Job on an existing Spark cluster: the driver holds the snapshot, executors run this project's reader.

    driver      locks the tables, exports the snapshot, cuts the chunks, writes a record per finished chunk
    executors   a Python worker with this wheel: one chunk each, in the driver's snapshot, into the job's folder

The folder must be the same on every machine, or be on a Hadoop file system (`files.py`). A chunk's file is written to a
temporary file, synced and renamed to a name that only this chunk has: a task that Spark runs twice writes the same rows
under the same name, and the driver keeps one record. The connection's secret goes to the executors with the task, over
Spark's RPC (`spark.network.crypto.enabled` protects it), and is not written anywhere by dbdyno.
"""

from __future__ import annotations

import os
import queue
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dbdyno.base.core_types import MoveEvent
from dbdyno.base.errors import MoveError
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres.source import Snapshot
from dbdyno.move.ledger.folder import Ledger
from dbdyno.move.reading.run import JobBuilder, JobOptions, Reading, job_spec, run_job
from dbdyno.move.spark.remote_jobs import complete_remote_job

STOPPED = {"kind": "stopped", "message": "stopped", "column": None, "chunk": None, "table": None, "code": None}
TASK_LOOK_S = 0.5
HADOOP = "spark.hadoop."


def session(master: str, name: str) -> Any:
    """Open a session on the cluster.

    Raises:
        MoveError: pyspark is missing, or the cluster cannot be reached.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MoveError(
            "PySpark is not installed", where="--engine spark", next_step="run `pip install 'dbdyno[spark]'`"
        ) from None
    try:
        # pyspark takes the executors' Python only from here; other machines must have it, with dbdyno installed.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master(master).appName(name)
        made = builder.config("spark.ui.enabled", "false").getOrCreate()
    except Exception as error:
        said = str(error).strip().splitlines()[0]
        raise MoveError(
            f"Spark cannot start a session: {said}",
            where=f"--master {master}",
            next_step="check that the cluster is up; run `dbdyno move resume` to continue the job without Spark",
        ) from None
    made.sparkContext.setLogLevel("ERROR")
    return made


class SparkJob:
    """Job with the interface of the core's `MoveJob`; its chunks are read by Spark tasks, each a separate Spark job."""

    def __init__(self, context: Any, tasks: Sequence[Mapping[str, Any]], at_once: int) -> None:
        self._context = context
        self._left: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        for task in tasks:
            self._left.put(task)
        self._told: queue.Queue[MoveEvent] = queue.Queue()
        self._stop = threading.Event()
        self._bytes = self._rows = 0
        # pyspark gives each of its threads a separate JVM thread, so that each can have its job group.
        from pyspark import InheritableThread

        workers = max(min(at_once, len(tasks)), 1)
        self._threads = [InheritableThread(target=self._work) for _ in range(workers)]
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                task = self._left.get_nowait()
            except queue.Empty:
                return
            try:
                found = self._context.parallelize([dict(task)], 1).map(read_chunk).collect()[0]
            except Exception as error:
                said = str(error).strip().splitlines()
                number = task["chunks"][0]["number"]
                # The executor's traceback ends with the actual error; the JVM's frames follow it.
                named = [line.strip() for line in said if re.match(r"\s*[\w.]*(Error|Exception)\b", line)]
                words = next((line for line in named if not line.startswith("org.")), said[0] if said else "")
                found = {"failed": {**STOPPED, "kind": "connection", "message": words[:300], "chunk": number}}
            if "failed" in found:
                self._stop.set()
            self._told.put(found)

    def next(self, limit_s: float) -> MoveEvent | None:
        """Return the next event, an empty one after `limit_s` seconds, or None at the end of the job."""
        try:
            event = self._told.get(timeout=limit_s)
        except queue.Empty:
            alive = any(thread.is_alive() for thread in self._threads)
            return {} if alive or not self._told.empty() else None
        if "done" in event:
            self._bytes += event["done"]["copy_bytes"]
            self._rows += event["done"]["rows"]
        return event

    def progress(self) -> tuple[int, int]:
        """Return the number of bytes received by COPY, and the number of rows, in finished chunks."""
        return self._bytes, self._rows

    def begun(self) -> int:
        """Return the number of started threads."""
        return len(self._threads)

    def stop(self) -> None:
        """Cancel all tasks."""
        if not self._stop.is_set():
            self._stop.set()
            self._context.cancelAllJobs()


def read_chunk(task: Mapping[str, Any]) -> MoveEvent:
    """Read one chunk with the Rust core in the driver's snapshot; runs on an executor."""
    from dbdyno import _core

    place = task.get("hadoop")
    if place is not None:
        return _read_away(task, place)
    job = _core.MoveJob(dict(task))  # type: ignore[arg-type]
    last: MoveEvent = {
        "failed": {"kind": "stream", "message": "the reader ended without a record of the chunk", "chunk": None}
    }
    while (event := job.next(TASK_LOOK_S)) is not None:
        last = event or last
    return last


def _read_away(task: Mapping[str, Any], place: Mapping[str, Any]) -> MoveEvent:
    """Read one chunk into a local file and copy that to a Hadoop file system before the chunk counts as finished."""
    from dbdyno.move.ledger.folder import files_of
    from dbdyno.move.spark.files import Hadoop

    (chunk,) = task["chunks"]
    with tempfile.TemporaryDirectory(prefix="dbdyno-move-") as folder:
        local, given = Path(folder) / Path(chunk["path"]).name, {**task, "chunks": [{**chunk}]}
        given["chunks"][0]["path"] = str(local)
        del given["hadoop"]
        found = read_chunk(given)
        for one in files_of({"file": chunk["path"]}, found["done"]) if "done" in found else ():
            name = Path(one["file"])
            here = local.parent / name.relative_to(Path(chunk["path"]).parent)
            Hadoop(place["place"], place["settings"]).put(here, str(name))
    return found


def job_builder(context: Any, place: str | None) -> JobBuilder:
    """Return a builder of Spark jobs; `place` is the folder on a Hadoop file system for the files, or None."""

    def make(reading: Reading) -> Any:
        # Files on a Hadoop file system have paths relative to its folder.
        folder = reading.folder
        here = None if folder is None else folder.absolute() if place is None else Path()
        spec = job_spec(replace(reading, folder=here))
        away = (
            {}
            if place is None or folder is None
            else {"hadoop": {"place": place, "settings": hadoop_settings(context)}}
        )
        tasks = [{**spec, **away, "chunks": [one], "workers": 1} for one in spec["chunks"]]
        return SparkJob(context, tasks, reading.options.workers)

    return make


def hadoop_settings(context: Any) -> dict[str, str]:
    """Return the Hadoop settings of the Spark session."""
    given = dict(context.getConf().getAll())
    return {name.removeprefix(HADOOP): str(value) for name, value in given.items() if name.startswith(HADOOP)}


def run(
    target: Postgres,
    ledger: Ledger,
    snapshot: Snapshot,
    options: JobOptions,
    master: str,
    opened: Callable[[str, str], Any] = session,
) -> None:
    """Read all unfinished chunks on the cluster; a job that fails can be resumed with or without Spark.

    Args:
        target: The server to read.
        ledger: The job's ledger.
        snapshot: The snapshot to read.
        options: Number of workers, memory and other limits.
        master: The URL of the Spark master.
        opened: Opens the Spark session.

    Raises:
        MoveError: The cluster cannot be reached, or a chunk failed.
    """
    spark = opened(master, f"dbdyno move {ledger.plan['id']}")
    place = ledger.plan.get("place")
    where = "the folder must be the same on every machine" if place is None else f"files go to {place}"
    options.say(f"on Spark {spark.version}, {master}: {where}")
    try:
        run_job(target, ledger, snapshot, options, job_builder(spark.sparkContext, place))
        if place is not None:
            complete_remote_job(ledger, hadoop_settings(spark.sparkContext))
            return
        ledger.manifest["status"] = "complete"
        ledger.save()
    finally:
        spark.stop()
