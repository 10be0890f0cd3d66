"""A pipe or a device instead of an evidence file gives an error message, and nothing waits for it without end.

DuckDB opens any path, and no signal interrupts that: the watchdog below kills a reader that does not check first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from made_store import MadeServer

from command_line import dbdyno
from dbdyno.base.errors import EvidenceError
from dbdyno.snapshot.reading.sums.chunk import _OPEN
from dbdyno.snapshot.store.folder import relation_of_places, rows_at

PATIENCE_S = 300


def asked(*words: object, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a separate process, because it could not be stopped in this one."""
    command = [sys.executable, "-P", "-m", "dbdyno", *map(str, words)]
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False, timeout=PATIENCE_S)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    server = MadeServer(tmp_path / "snaps")
    for _ in range(3):
        server.call(1, 10, 5.0)
        server.step()
    return tmp_path


def put_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def test_a_pipe_in_a_store_is_named(store: Path) -> None:
    put_pipe(store / "snaps" / "000003" / "pg_stat_database.parquet")
    done = asked("snap", "report", "1", "3", folder=store)
    assert "pg_stat_database.parquet is not a file" in done.stdout + done.stderr
    assert "internal error" not in done.stderr


def test_a_pipe_among_the_sums_is_named_or_passed_over(store: Path) -> None:
    assert dbdyno("snap", "report", "1", "3", cwd=store).returncode == 0
    found = list((store / "snaps" / "sums").rglob("*.parquet"))
    assert found
    for path in found:
        put_pipe(path)
    done = asked("snap", "report", "1", "3", folder=store)
    assert done.returncode == 0 or "is not a file" in done.stderr
    assert "internal error" not in done.stderr


def test_sums_that_are_not_ours_are_an_error_with_words(store: Path) -> None:
    assert dbdyno("snap", "report", "1", "3", cwd=store).returncode == 0
    for path in (store / "snaps" / "sums").rglob("chunk.json"):
        found = json.loads(path.read_text())
        found["views"] = {name: [[]] for name in found["views"]}
        path.write_text(json.dumps(found))
    _OPEN.clear()
    done = dbdyno("snap", "report", "1", "3", cwd=store)
    assert "internal error" not in done.stderr
    assert done.returncode == 0 or "is damaged" in done.stderr


def test_a_pipe_among_the_rows_of_many_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.parquet")
    for rows in (relation_of_places, rows_at):
        with pytest.raises(EvidenceError, match="is not a file"):
            rows([(str(tmp_path / "x.parquet"), 1)])


def test_a_pipe_in_a_run_folder_is_a_part_that_is_missing(tmp_path: Path) -> None:
    from dbdyno.evidence.query import complete_parts
    from dbdyno.evidence.run import Block, SliceRecord, new_run

    run = new_run(tmp_path / "runs", "x", {"kind": "experiment"})
    (run.path / "calls").mkdir()
    os.mkfifo(run.path / "calls" / "b000000.parquet")
    run.add_block(Block(0, "measure", 1, 2, 3, [SliceRecord(0, 0)]))
    parts, broken = complete_parts(run, "calls")
    assert parts == [] and "is missing" in broken[0]
