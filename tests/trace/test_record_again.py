"""The recorder comes and goes a hundred times under a load, and meets a thousand short connections: nobody is harmed,
nobody is missed."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from proxy_help import pgbench
from record_again_help import fates, logged, under_pgbench
from record_help import changed_code, recorded, rows, session

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from kernel_probes import require_probes

CYCLES, KILLED = 100, 30
CONNECTIONS = 1000
PLACES = 100
"""Number of probes that are certainly set before a recorder is ready; there are more than 150 in total."""


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedPostgres]:
    require_probes()
    with EmbeddedPostgres() as running:
        pgbench(running, running.conninfo(), "-i", "-q", "-s", "1")
        yield running


def killed(engine: EmbeddedPostgres, folder: Path, dice: random.Random) -> None:
    """Kill a recorder with SIGKILL while its probes are being set, or a moment later."""
    words = ["trace", "record", "--exact", "--pid", str(engine.pid), "--out", "killed"]
    command = [sys.executable, "-m", "dbdyno", *words]
    at = dice.randint(1, PLACES)
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as recorder:
        while changed_code(engine) < at:
            assert recorder.poll() is None, "the recorder ended by itself"
        recorder.kill()


@pytest.mark.soak
def test_a_hundred_recorders_come_and_go_under_pgbench_and_thirty_are_killed(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    dice, kinds = fates(CYCLES, KILLED)
    begin = engine.log_file.stat().st_size
    with under_pgbench(engine):
        for number, is_killed in enumerate(kinds):
            if is_killed:
                killed(engine, tmp_path, dice)
                continue
            with recorded(engine, tmp_path / f"run{number}"):
                time.sleep(dice.random() / 10)
    while changed_code(engine) > 0:
        time.sleep(0.1)
    with session(engine) as connection, contextlib.suppress(psycopg.Error):
        connection.execute("select 1 / 0 as last")
    said = logged(engine, begin)
    assert [line for line in said if "division by zero" in line], "what goes wrong stands in this log"
    assert [line for line in said if "division by zero" not in line and "STATEMENT:  select 1 / 0" not in line] == []
    assert not (tmp_path / "killed").exists()


@pytest.mark.soak
def test_of_a_thousand_connections_of_one_statement_none_is_lost(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    def one(number: int) -> None:
        with session(engine) as connection:
            connection.execute(f"select 'x' as connection_{number:04}".encode())

    with recorded(engine, tmp_path / "run") as it, ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(CONNECTIONS)))
    assert it.report["lost"] == 0
    found = rows(
        tmp_path / "run",
        "select s.text, count(*), count(distinct c.session) from calls c join statements s using (statement)"
        " where s.text like '%connection%' and c.kind = 'exec' group by s.text",
    )
    assert sorted(text for text, _, _ in found) == [
        f"select ? as connection_{number:04}" for number in range(CONNECTIONS)
    ]
    assert {(calls, sessions) for _, calls, sessions in found} == {(1, 1)}
