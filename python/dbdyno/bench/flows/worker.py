"""An engine of data flows as a process: `python -m dbdyno.bench.flows.worker ENGINE`.

Each line of stdin is a command, and each line of stdout the answer to one. Words are separated by tabs, texts are
encoded in base64:

    tables NAME FOLDER                 ok
    run NAME on|off TEXT               ok NANOSECONDS CPU_NANOSECONDS ROWS      rows: JSON, a list of lists
    whatever cannot be done            failed TEXT

NAME is a set of tables, FOLDER holds their CSV files. The first line of stdout is `hello TEXT`, with the engine's
version.
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
        """Load a set of tables."""

    def prepare(self, name: str, optimizer: bool) -> None:
        """Set what a flow needs before it is timed: its set of tables, and the optimizer."""

    def run(self, text: str) -> list[Any]:
        """Run a flow and return its rows."""

    def answer(self, rows: list[Any]) -> list[Any]:
        """Return the answer that the rows contain, or the rows themselves; not timed."""

    def cpu_ns(self) -> int:
        """Return the CPU time that the engine has used so far, in ns."""

    def close(self) -> None:
        """Release what the engine holds, at the end."""


class AnswerWorker:
    """Base of workers whose rows are the answer and that have nothing to release."""

    def answer(self, rows: list[Any]) -> list[Any]:
        """Return the rows."""
        return rows

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _columns() -> dict[str, str]:
    return {table.name: ", ".join(f"{name} bigint" for name in table.columns) for table in TABLES}


def own_cpu_ns() -> int:
    """Return the CPU time of this process and its ended children, in ns."""
    times = os.times()
    return round((times.user + times.system + times.children_user + times.children_system) * 1e9)


def _cpu_of(pid: int) -> int:
    """Return the CPU time of another process in ns, with the resolution of a clock tick; 0 if it cannot be read."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class DuckDb(AnswerWorker):
    """DuckDB in memory, one thread."""

    def __init__(self) -> None:
        import duckdb

        self.connection = duckdb.connect(config={"threads": 1})
        self.about = f"DuckDB {duckdb.__version__}"

    def tables(self, name: str, folder: Path) -> None:
        """Load the tables into a new schema."""
        self.connection.execute(f"create schema {name}")
        for table, columns in _columns().items():
            self.connection.execute(f"create table {name}.{table} ({columns})")
            self.connection.execute(f"copy {name}.{table} from '{folder / table}.csv' (header false)")

    def prepare(self, name: str, optimizer: bool) -> None:
        """Select the schema, and switch the optimizer on or off."""
        self.connection.execute(f"set schema = '{name}'")
        self.connection.execute(f"pragma {'enable' if optimizer else 'disable'}_optimizer")

    def run(self, text: str) -> list[Any]:
        """Run a flow and return all rows."""
        return self.connection.execute(text).fetchall()

    def cpu_ns(self) -> int:
        """Return the CPU time of this process in ns."""
        return own_cpu_ns()


class Spark(AnswerWorker):
    """Spark in this process and its JVM, one thread, its tables cached."""

    def __init__(self) -> None:
        import pyspark

        from dbdyno.flow import spark_plans

        self.held = spark_plans.session([])
        self.spark = self.held.__enter__()
        self.off = ",".join(f"{spark_plans.PREFIX}{rule}" for rule in spark_plans.RULES)
        self.about = f"Spark {pyspark.__version__}"

    def tables(self, name: str, folder: Path) -> None:
        """Create cached views of the tables, each read once."""
        for table, columns in _columns().items():
            frame = self.spark.read.csv((folder / f"{table}.csv").as_uri(), schema=columns).cache()
            frame.count()
            frame.createOrReplaceTempView(f"{name}_{table}")

    def prepare(self, name: str, optimizer: bool) -> None:
        """Select the views, and enable or disable adaptive execution and the optimizer rules that move steps."""
        for table in _columns():
            self.spark.table(f"{name}_{table}").createOrReplaceTempView(table)
        self.spark.conf.set("spark.sql.optimizer.excludedRules", "" if optimizer else self.off)
        self.spark.conf.set("spark.sql.adaptive.enabled", str(optimizer).lower())

    def run(self, text: str) -> list[Any]:
        """Run a flow and return all rows."""
        return [tuple(row) for row in self.spark.sql(text).collect()]

    def cpu_ns(self) -> int:
        """Return the CPU time of the JVM, which does the work, in ns."""
        return _cpu_of(self.spark.sparkContext._gateway.proc.pid)


class Postgres(AnswerWorker):
    """A PostgreSQL session on a server that was started for it."""

    def __init__(self) -> None:
        import psycopg

        self.connection = psycopg.connect(os.environ[DSN], autocommit=True)
        self.execute("set max_parallel_workers_per_gather = 0")
        self.about = f"PostgreSQL {self.connection.info.parameter_status('server_version')}"
        self.backend = self.connection.info.backend_pid

    def execute(self, text: str) -> Any:
        """Run a statement and return the cursor."""
        return self.connection.execute(text.encode())

    def tables(self, name: str, folder: Path) -> None:
        """Load the tables into a new schema."""
        self.execute(f"create schema {name}")
        for table, columns in _columns().items():
            self.execute(f"create table {name}.{table} ({columns})")
            took = f"copy {name}.{table} from stdin (format csv)"
            with self.connection.cursor() as cursor, cursor.copy(took) as copy:
                copy.write((folder / f"{table}.csv").read_bytes())
            self.execute(f"vacuum analyze {name}.{table}")

    def prepare(self, name: str, optimizer: bool) -> None:
        """Select the schema, and set whether the planner may reorder joins."""
        self.execute(f"set search_path = {name}")
        for setting in ("join_collapse_limit", "from_collapse_limit"):
            self.execute(f"set {setting} = {'default' if optimizer else '1'}")

    def run(self, text: str) -> list[Any]:
        """Run a flow and return all rows."""
        return list(self.execute(text).fetchall())

    def cpu_ns(self) -> int:
        """Return the CPU time of the session's process on the server, in ns."""
        return _cpu_of(self.backend)


WORKERS: dict[str, Callable[[], Worker]] = {"duckdb": DuckDb, "spark": Spark, "postgres": Postgres}


def encode_word(text: str) -> str:
    """Return a text encoded as one word of the protocol."""
    return base64.b64encode(text.encode()).decode()


def decode_word(word: str) -> str:
    """Return the text that a word of the protocol encodes."""
    return base64.b64decode(word).decode()


def _answer(worker: Worker, words: list[str]) -> str:
    if words[0] == "tables":
        worker.tables(words[1], Path(decode_word(words[2])))
        return "ok"
    worker.prepare(words[1], words[2] == "on")
    used, began = worker.cpu_ns(), time.monotonic_ns()
    rows = worker.run(decode_word(words[3]))
    elapsed, used = time.monotonic_ns() - began, worker.cpu_ns() - used
    answer = encode_word(json.dumps(worker.answer(rows), default=str))
    return "\t".join(("ok", str(elapsed), str(max(0, used)), answer))


def serve(opened: Callable[[], Worker]) -> None:
    """Serve an engine until stdin ends."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints must not become an answer
    try:
        worker = opened()
    except Exception as error:
        out.write(f"failed\t{encode_word(str(error) or type(error).__name__)}\n")
        return
    out.write(f"hello\t{encode_word(worker.about)}\n")
    for line in sys.stdin:
        try:
            said = _answer(worker, line.rstrip("\n").split("\t"))
        except Exception as error:
            said = f"failed\t{encode_word(str(error).strip() or type(error).__name__)}"
        out.write(said + "\n")
    worker.close()
    os._exit(0)


def main() -> None:
    """Serve the engine that the command line names."""
    serve(WORKERS[sys.argv[1]])


if __name__ == "__main__":
    main()
