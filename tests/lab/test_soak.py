"""Test that memory does not grow over 50 million operations on a real server; it takes minutes (`make soak`)."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from dbdyno import _core
from dbdyno.bench.postgres.server import Postgres
from together import meanwhile

OPERATIONS = int(os.environ.get("DBDYNO_SOAK_OPERATIONS", "50000000"))
BATCH = 100
SCRIPT = "\\startpipeline\n" + "select 1;\n" * BATCH + "\\endpipeline\n"


def resident_mib() -> float:
    """Return the resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.soak
def test_memory_is_flat_however_many_operations_a_block_has(server, tmp_path: Path):
    arm = {
        "name": "soak",
        "connection": Postgres.from_engine(server).conninfo(),
        "scripts": [{"name": "batch", "text": SCRIPT}],
        "sessions": 2,
    }
    load = _core.Load({"seed": 1, "arms": [arm]})
    load.connect(0)
    load.begin_block(tmp_path, "b")
    seen: list[tuple[int, float]] = []

    def look(done: threading.Event) -> None:
        while not done.wait(0.2):
            seen.append((load.progress() * BATCH, resident_mib()))

    started = time.monotonic()
    with meanwhile(look):
        load.run(0, [(0, 0, None, OPERATIONS // BATCH)])
    rows = load.end_block()
    assert rows >= OPERATIONS
    early = max(memory for count, memory in seen if count <= OPERATIONS / 5)
    late = max(memory for _, memory in seen)
    took = time.monotonic() - started
    print(f"{rows} rows in {took:.0f} s, {early:.0f} MiB in the first fifth, {late:.0f} MiB at most")
    assert late < early * 1.25 + 16
