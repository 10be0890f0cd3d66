"""An engine of data flows as a process: `python -m dbdyno.bench.flows.worker ENGINE`.

A line of stdin is a command, a line of stdout its answer; words are parted by tabs, texts are base64:

    tables NAME FOLDER                 ok
    run NAME on|off TEXT               ok NANOSECONDS CPU_NANOSECONDS ROWS      rows: JSON, a list of lists
    whatever cannot be done            failed TEXT

NAME is a set of tables, FOLDER holds their CSV files. The first line of all is `hello TEXT`, the engine's version.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from dbdyno.bench.flows.tables import TABLES

DSN = "DBDYNO_FLOW_DSN"


class Worker(Protocol):
    """An engine in this process."""

    about: str

    def tables(self, name: str, folder: Path) -> None:
        """Takes a set of tables."""

    def prepare(self, name: str, optimizer: bool) -> None:
        """What is set before a flow is timed."""

    def run(self, text: str) -> list[Any]:
        """The rows of a flow."""

    def answer(self, rows: list[Any]) -> list[Any]:
        """What the rows say, or the rows themselves; not timed."""

    def cpu_ns(self) -> int:
        """CPU that the engine has used so far."""

    def close(self) -> None:
        """At the end."""


class Answering:
    """A worker whose rows are its answer, and that leaves nothing."""

    def answer(self, rows: list[Any]) -> list[Any]:
        """The rows."""
        return rows

    def close(self) -> None:
        """Nothing is left."""


def _columns() -> dict[str, str]:
    return {table.name: ", ".join(f"{name} bigint" for name in table.columns) for table in TABLES}


def own_cpu_ns() -> int:
    """Of this process, and of those that it started and that have ended."""
    times = os.times()
    return round((times.user + times.system + times.children_user + times.children_system) * 1e9)


def _cpu_of(pid: int) -> int:
    """CPU of another process, to a tick of the kernel; 0 where it cannot be seen."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class DuckDb(Answering):
    """DuckDB in memory, one thread."""

    def __init__(self) -> None:
        import duckdb

        self.connection = duckdb.connect(config={"threads": 1})
        self.about = f"DuckDB {duckdb.__version__}"

    def tables(self, name: str, folder: Path) -> None:
        """A schema of its own."""
        self.connection.execute(f"create schema {name}")
        for table, columns in _columns().items():
            self.connection.execute(f"create table {name}.{table} ({columns})")
            self.connection.execute(f"copy {name}.{table} from '{folder / table}.csv' (header false)")

    def prepare(self, name: str, optimizer: bool) -> None:
        """The schema, and whether it optimizes."""
        self.connection.execute(f"set schema = '{name}'")
        self.connection.execute(f"pragma {'enable' if optimizer else 'disable'}_optimizer")

    def run(self, text: str) -> list[Any]:
        """All rows."""
        return self.connection.execute(text).fetchall()

    def cpu_ns(self) -> int:
        """Of this process."""
        return own_cpu_ns()


class Spark(Answering):
    """Spark in this process and its JVM, one thread, its tables cached."""

    def __init__(self) -> None:
        import pyspark

        from dbdyno.flow import in_spark

        self.held = in_spark.session([])
        self.spark = self.held.__enter__()
        self.off = ",".join(f"{in_spark.PREFIX}{rule}" for rule in in_spark.RULES)
        self.about = f"Spark {pyspark.__version__}"

    def tables(self, name: str, folder: Path) -> None:
        """Views that are read once."""
        for table, columns in _columns().items():
            frame = self.spark.read.csv((folder / f"{table}.csv").as_uri(), schema=columns).cache()
            frame.count()
            frame.createOrReplaceTempView(f"{name}_{table}")

    def prepare(self, name: str, optimizer: bool) -> None:
        """The views, and whether it moves steps."""
        for table in _columns():
            self.spark.table(f"{name}_{table}").createOrReplaceTempView(table)
        self.spark.conf.set("spark.sql.optimizer.excludedRules", "" if optimizer else self.off)
        self.spark.conf.set("spark.sql.adaptive.enabled", str(optimizer).lower())

    def run(self, text: str) -> list[Any]:
        """All rows."""
        return [tuple(row) for row in self.spark.sql(text).collect()]

    def cpu_ns(self) -> int:
        """Of the JVM, which does the work."""
        return _cpu_of(self.spark.sparkContext._gateway.proc.pid)


class Postgres(Answering):
    """A session of PostgreSQL on a server that was started for it."""

    def __init__(self) -> None:
        import psycopg

        self.connection = psycopg.connect(os.environ[DSN], autocommit=True)
        self.execute("set max_parallel_workers_per_gather = 0")
        self.about = f"PostgreSQL {self.connection.info.parameter_status('server_version')}"
        self.backend = self.connection.info.backend_pid

    def execute(self, text: str) -> Any:
        """A statement of ours, or a flow."""
        return self.connection.execute(text.encode())

    def tables(self, name: str, folder: Path) -> None:
        """A schema of its own."""
        self.execute(f"create schema {name}")
        for table, columns in _columns().items():
            self.execute(f"create table {name}.{table} ({columns})")
            took = f"copy {name}.{table} from stdin (format csv)"
            with self.connection.cursor() as cursor, cursor.copy(took) as copy:
                copy.write((folder / f"{table}.csv").read_bytes())
            self.execute(f"vacuum analyze {name}.{table}")

    def prepare(self, name: str, optimizer: bool) -> None:
        """The schema, and whether joins may move."""
        self.execute(f"set search_path = {name}")
        for setting in ("join_collapse_limit", "from_collapse_limit"):
            self.execute(f"set {setting} = {'default' if optimizer else '1'}")

    def run(self, text: str) -> list[Any]:
        """All rows."""
        return list(self.execute(text).fetchall())

    def cpu_ns(self) -> int:
        """Of the session's process on the server."""
        return _cpu_of(self.backend)


WORKERS: dict[str, Callable[[], Worker]] = {"duckdb": DuckDb, "spark": Spark, "postgres": Postgres}


def packed(text: str) -> str:
    """A text as a word."""
    return base64.b64encode(text.encode()).decode()


def unpacked(word: str) -> str:
    """The text of a word."""
    return base64.b64decode(word).decode()


def _answer(worker: Worker, words: list[str]) -> str:
    if words[0] == "tables":
        worker.tables(words[1], Path(unpacked(words[2])))
        return "ok"
    worker.prepare(words[1], words[2] == "on")
    used, began = worker.cpu_ns(), time.monotonic_ns()
    rows = worker.run(unpacked(words[3]))
    elapsed, used = time.monotonic_ns() - began, worker.cpu_ns() - used
    answer = packed(json.dumps(worker.answer(rows), default=str))
    return "\t".join(("ok", str(elapsed), str(max(0, used)), answer))


def serve(opened: Callable[[], Worker]) -> None:
    """Serves until stdin ends."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints is no answer
    try:
        worker = opened()
    except Exception as error:
        out.write(f"failed\t{packed(str(error) or type(error).__name__)}\n")
        return
    out.write(f"hello\t{packed(worker.about)}\n")
    for line in sys.stdin:
        try:
            said = _answer(worker, line.rstrip("\n").split("\t"))
        except Exception as error:
            said = f"failed\t{packed(str(error).strip() or type(error).__name__)}"
        out.write(said + "\n")
    worker.close()
    os._exit(0)


def main() -> None:
    """The engine that the command line names."""
    serve(WORKERS[sys.argv[1]])


if __name__ == "__main__":
    main()
