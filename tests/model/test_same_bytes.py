"""A seed gives the same results on every machine: digests of complete runs are recorded here.

Logarithms and the like come from `libm`, which is compiled from source, and not from the system's library; everything
else uses integers, or operations that IEEE 754 rounds exactly. If a change of the model is meant to change results,
update these digests.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dbdyno import _core

WORKLOADS: dict[str, Any] = {
    "exadata-x2": {"kind": "commit-loop", "redo_bytes": "512..64KiB", "think_ms": 0.2},
    "sas-and-flash": {"kind": "update-loop"},
    "san": {"kind": "key-lookup"},
}
"""A workload for each machine; together they have disks, controllers, flash, cells, log, buffers and a scheduler."""
KNOWN = {
    "exadata-x2": "772481f6304625dc21e674a3e28adca6",
    "sas-and-flash": "fb087e10b7f4f5b1e8226abe7ad0a123",
    "san": "774277743f881edbb2ede3f63a8cc002",
}
POSTGRES = """
title = "made"
[postgres]
cores = 2
cpu_sigma = 0.4
delay = { kind = "lognormal", median_us = 30.0, sigma = 0.5 }
delay_memory = 0.3
statements = [{ text = "update", user_us = 20.0, system_us = 10.0, wal_bytes = 300.0 }]
[devices.log]
kind = "empirical"
capacity_gb = 100.0
servers = 1
regimes = [{ read = { kind = "constant", us = 1.0 }, write = { kind = "lognormal", median_us = 200.0, sigma = 0.4 } }]
[storage]
redo = "log"
data = "log"
"""
KNOWN_POSTGRES = {False: "ffc6ce8a4a5197812e064b85545b9e67", True: "f128fdce2f91090a3dc4ea6b7233d130"}
"""Expected digests for a PostgreSQL model, and for a MariaDB with a binary log (True)."""


def digest(folder: Path) -> str:
    """Return a digest of all numbers in a block's evidence; Parquet's own bytes depend on the version of its writer."""
    found = hashlib.sha256()
    for room in ("calls", "waits", "metrics"):
        table = pq.read_table(folder / room / "b000000.parquet")
        for name in sorted(set(table.column_names) & {"started_ns", "elapsed_ns", "at_ns", "value", "p1", "p2"}):
            found.update(repr(table.column(name).to_pylist()).encode())
    return found.hexdigest()[:32]


@pytest.mark.parametrize("machine", WORKLOADS)
def test_a_seed_gives_the_same_evidence_on_every_machine(machine: str, tmp_path: Path):
    arm = {"name": "only", "settings": {}, "sessions": 5, "workload": WORKLOADS[machine]}
    spec = {"machine": _core.model_machine(machine), "seed": 2_011, "transactions": 30, "arms": [arm]}
    _core.ModelRun(spec).block(0, tmp_path)
    assert digest(tmp_path) == KNOWN[machine]


@pytest.mark.parametrize("binlog", [False, True])
def test_a_seed_gives_the_same_times_of_a_modelled_server_on_every_machine(binlog: bool):
    steps = [{"statement": 0, "lock": {"table": 1, "rows": [1, 2, 3, 4]}}, {"statement": 0, "commits": True}]
    load = {"sessions": 6, "transactions": 2_000, "warmup": 100, "limit_s": 1e3}
    changes = {"wakes_all": "false", "binlog": "true", "binlog_sync_every": "1"} if binlog else {}
    spec = {
        "machine": POSTGRES,
        "settings": {f"postgres.{name}": value for name, value in changes.items()},
        "seed": 2_026,
        "load": {**load, "scripts": [{"weight": 1, "steps": steps}]},
    }
    times = _core.model_postgres(spec)["latencies_ns"]  # type: ignore[arg-type]
    assert hashlib.sha256(times).hexdigest()[:32] == KNOWN_POSTGRES[binlog]
