"""Measures the cost of exact waits: pgbench with and without `dbdyno trace record`, in turns in ABBA order.

    python benches/record.py [--mode sites|watch|read] [--rounds 4] [--seconds 5]

CPU of a select-only transaction (one session; the backend's own, as the kernel accounts it when the process ends) and
throughput of TPC-B (two sessions). Both arms of a pair run on the same server within seconds. A busy machine moves the
throughput more than the recorder does; CPU per transaction can be trusted there.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from figures import figure, length, parse

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.trace.record.process import ServerProcess
from dbdyno.trace.record.recording import RecordingOptions, recording

ORDER = "ABBA"
Tracer = contextlib.AbstractContextManager[JsonObject]


def pgbench(engine: EmbeddedPostgres, *options: str) -> str:
    """What pgbench says."""
    known = engine.conninfo()
    environment = {
        **os.environ,
        "PGHOST": str(known["host"]),
        "PGPORT": str(known["port"]),
        "PGUSER": str(known["user"]),
        "PGDATABASE": str(known["dbname"]),
    }
    program = engine.binaries.program("pgbench")
    if not program.exists():  # builds of other versions have the server alone
        program = next(Path("/usr/lib/postgresql").glob("*/bin/pgbench"), program)
    return subprocess.run([str(program), *options], env=environment, check=True, capture_output=True, text=True).stdout


def reaped_s(pid: int) -> float:
    """CPU of the server's processes that have ended."""
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[13]) + int(words[14])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def recorded(engine: EmbeddedPostgres, mode: str | None) -> Iterator[JsonObject]:
    """Records while the block runs, if there is a mode; the dict has what the recorder told."""
    told: JsonObject = {}
    with tempfile.TemporaryDirectory() as folder:
        if mode is None:
            yield told
            return
        # Looks take what they take unasked: 2 % of a small machine.
        wanted = RecordingOptions(cost_limit=None if mode == "read" else 0, mode=mode)
        with recording(ServerProcess(int(engine.pid or 0)), Path(folder) / "run", wanted) as it:
            yield told
        told |= it.report


def turn(engine: EmbeddedPostgres, tracer: Tracer, options: list[str]) -> dict[str, float]:
    """One turn of pgbench beside a tracer: CPU per transaction, throughput, and what was recorded."""
    with tracer as told:
        before = reaped_s(int(engine.pid or 0))
        text = pgbench(engine, *options)
        time.sleep(0.1)
        used = reaped_s(int(engine.pid or 0)) - before
    done = int(re.search(r"actually processed: (\d+)", text).group(1))  # type: ignore[union-attr]
    tps = float(re.search(r"tps = ([\d.]+)", text).group(1))  # type: ignore[union-attr]
    own = told.get("own_cpu_ns", 0) / max(told.get("elapsed_ns", 1), 1)
    rate = told.get("notes", 0) / max(told.get("elapsed_ns", 1), 1) * 1e9
    return {"cpu_us": used / done * 1e6, "tps": tps, "lost": told.get("lost", 0), "own": own, "notes_s": rate}


def workloads_of(seconds: int) -> dict[str, list[str]]:
    """What pgbench does."""
    lasting = ["-n", *length(seconds, 50)]
    return {
        "select-only, 1 session": ["-S", "-M", "prepared", "-c", "1", *lasting],
        "TPC-B, 2 sessions": ["-M", "prepared", "-c", "2", *lasting],
    }


def main() -> None:
    """Both workloads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=["sites", "watch", "read"], default="sites")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=5)
    chosen = parse(parser, rounds=1, seconds=1)
    with EmbeddedPostgres() as engine:
        pgbench(engine, "-i", "-s", "1" if chosen.smoke else "5", "-q")
        workloads = workloads_of(chosen.seconds)
        for name, options in workloads.items():
            arms: dict[str, list[dict[str, float]]] = {"A": [], "B": []}
            for arm in ORDER[: 2 if chosen.smoke else 4] * chosen.rounds:
                mode = chosen.mode if arm == "B" else None
                arms[arm].append(turn(engine, recorded(engine, mode), options))
            told(f"{name}, {chosen.mode}", arms)


def told(name: str, arms: dict[str, list[dict[str, float]]]) -> None:
    """Medians and smallest of both arms, and the recorder's own figures."""

    def middle(arm: str, what: str) -> float:
        return statistics.median(one[what] for one in arms[arm])

    def least(arm: str, what: str) -> float:
        return min(one[what] for one in arms[arm])

    print(name)
    print(
        f"  CPU a transaction, us: without {middle('A', 'cpu_us'):.1f} (least {least('A', 'cpu_us'):.1f}),"
        f" recorded {middle('B', 'cpu_us'):.1f} (least {least('B', 'cpu_us'):.1f})"
    )
    ratio = middle("B", "tps") / middle("A", "tps")
    print(f"  transactions/s: without {middle('A', 'tps'):,.0f}, recorded {middle('B', 'tps'):,.0f}: {ratio:.3f}")
    print(
        f"  notes/s {middle('B', 'notes_s'):,.0f}, lost {sum(one['lost'] for one in arms['B']):.0f},"
        f" recorder {middle('B', 'own'):.1%} of a core"
    )
    used = [middle(arm, "cpu_us") for arm in "AB"]
    figure(f"{name}: CPU of a transaction", used[1], "us", against="not recorded", ratio=used[1] / max(used[0], 1e-9))
    figure(f"{name}: throughput", middle("B", "tps"), "1/s", against="not recorded", ratio=ratio)


if __name__ == "__main__":
    main()
