"""Plans on a MariaDB server that belongs to somebody else, run as a user would."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from command_line import dbdyno
from dbdyno.base.json_types import JsonObject

WORK = """[workload]
setup = ["create table {table} (id int primary key, v int, s varchar(40))",
  "insert into {table} select seq, 0, 'x' from {schema}.seq_1_to_100"]
teardown = ["drop table if exists {table}"]
scripts = [{{name = "s", text = '''{script}'''}}]
{more}"""
UPDATE = "\\set id random(1, 100)\nbegin;\nupdate {table} set v = v + 1 where id = :id;\ncommit;\n"


@dataclass
class MariaLab:
    """An empty folder for runs, and a server."""

    folder: Path
    dsn: str
    table: str = "test.t"

    def plan(self, arms: str, *, script: str = UPDATE, work: str = WORK, more: str = "", target: str = "") -> Path:
        """Writes a small plan."""
        script = script.replace("{table}", self.table)
        text = f"""title = "small"
[target]
dsn = "{self.dsn}"
{target}
{work.format(table=self.table, schema=self.table.partition(".")[0], script=script, more=more)}
[load]
sessions = 2
[schedule]
blocks = 2
warmup_blocks = 1
turn = "80ms"
slice = "40ms"
settle = "0ms"
[watch]
overhead_blocks = 0
{arms}
"""
        path = self.folder / "plan.toml"
        path.write_text(text)
        return path

    def run(self, *words: str, code: int | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the plan and return its process; verdicts that depend on the test machine are not checked."""
        done = dbdyno("run", "plan.toml", *words, cwd=self.folder, NO_COLOR="1", **environment)
        assert done.returncode in ((0, 1) if code is None else (code,)), f"{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    def command(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command with the server as its target."""
        done = dbdyno(*words, "--target", self.dsn, cwd=self.folder, NO_COLOR="1")
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done

    @property
    def last(self) -> Path:
        """Return the folder of the last run."""
        return sorted((self.folder / "runs").iterdir())[-1]

    def manifest(self) -> JsonObject:
        """Return the manifest of the last run."""
        found: JsonObject = json.loads((self.last / "manifest.json").read_text())
        return found

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        """Run a query on the evidence of the last run; `{calls}`, `{waits}` and `{metrics}` are its tables."""
        parts = {name: f"read_parquet('{self.last}/{name}/*.parquet')" for name in ("calls", "waits", "metrics")}
        with duckdb.connect() as own:
            return own.sql(query.format(**parts)).fetchall()
