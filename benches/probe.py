"""Compares the redo probe with fio on the same job: sequential writes of 4 KiB with O_DIRECT to a filled file.

Writes go one at a time, and rounds alternate. The job runs with O_DSYNC, as a log does, and without it if the device
is fast enough to show the cost of the software.

python benches/probe.py [--rounds 7] [--seconds 2] [--folder FOLDER]

fio comes from Debian's packages (tools/setup-test). fio keeps no single latency here; the probe
keeps every one. Its own cost on a sink is printed too.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from figures import SMOKE, figure, parse

from dbdyno import _core

BYTES = 8 << 20 if SMOKE else 64 << 20
QUANTILES = {"p50": "50.000000", "p99": "99.000000"}


def spec(path: Path, **more: object) -> dict[str, Any]:
    """One log of one session that does not think."""
    arm = {"name": "log", "paths": [str(path)], "file_bytes": BYTES, "size": "4000", **more}
    return {"seed": 1, "arms": [arm]}


def probe(folder: Path, seconds: float, dsync: bool) -> dict[str, float]:
    """Writes a second and their quantiles [us], of the log writer's own writes."""
    log = _core.Probe(spec(folder / "probe.log", sync="direct+dsync" if dsync else "direct"), 1)
    log.open()
    try:
        report = log.run(0, [(0, 0, round(seconds * 1e9), None)])
        log.end_block(folder, "b")
    finally:
        log.close()
    import duckdb

    (row,) = duckdb.execute(
        "select count(*), quantile_cont(elapsed_ns, 0.5), quantile_cont(elapsed_ns, 0.99)"
        f" from '{folder}/waits/b.parquet' where object = 'first path'"
    ).fetchall()
    length = (report["ended_ns"] - report["started_ns"]) / 1e9
    return {"rate": row[0] / length, "p50": row[1] / 1e3, "p99": row[2] / 1e3}


def fio(folder: Path, seconds: float, dsync: bool) -> dict[str, float]:
    """The same of fio; the file is written all over first, as the probe does."""
    file = folder / "fio.log"
    if not file.exists():
        with file.open("wb") as out:
            for _ in range(BYTES >> 20):
                out.write(bytes(1 << 20))
    words = {
        "name": "log",
        "filename": file,
        "size": BYTES,
        "rw": "write",
        "bs": "4k",
        "direct": 1,
        "sync": "dsync" if dsync else "none",
        "overwrite": 1,
        "ioengine": "psync",
        "time_based": 1,
        "runtime": f"{seconds:g}s",
        "output-format": "json",
        "percentile_list": "50:99",
    }
    command = ["fio", *(f"--{key}={value}" for key, value in words.items())]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    job = json.loads(done.stdout)["jobs"][0]["write"]
    latencies = job["clat_ns"]["percentile"]
    return {
        "rate": job["iops"],
        **{name: latencies[key] / 1e3 for name, key in QUANTILES.items()},
    }


def main() -> None:
    """Prints both medians and the median of the rounds' ratios with its range."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--folder", type=Path, default=None)
    asked = parse(parser, rounds=1, seconds=0.3)
    cost = {
        "one path": {},
        "two, race": {"paths": ["a", "b"], "rule": "first"},
    }
    for name, more in cost.items():
        told = _core.Probe(spec(Path("sink"), **more), 1).cost(90_000)[0]
        print(f"own cost, {name}: {told['write_ns']} ns a write, {told['cpu_ns']} ns of CPU")
    if shutil.which("fio") is None:
        print("fio is not installed (tools/setup-test): no comparison")
        return
    with tempfile.TemporaryDirectory(dir=asked.folder, prefix="dbdyno-bench-") as name:
        for dsync in (True, False):
            print(f"-- {'O_DIRECT and O_DSYNC' if dsync else 'O_DIRECT alone'}")
            _compare(Path(name), asked.seconds, asked.rounds, dsync)


def _compare(folder: Path, seconds: float, rounds: int, dsync: bool) -> None:
    pairs = []
    for at in range(rounds):
        turns = [(probe, fio), (fio, probe)][at % 2]
        found = {turn.__name__: turn(folder, seconds, dsync) for turn in turns}
        pairs.append((found["probe"], found["fio"]))
        print(f"round {at + 1}: probe {_words(pairs[-1][0])}; fio {_words(pairs[-1][1])}")
    for key in ("rate", "p50", "p99"):
        ratios = sorted(ours[key] / theirs[key] for ours, theirs in pairs)
        print(
            f"{key}: probe / fio = {statistics.median(ratios):.2f}"
            f" ({ratios[0]:.2f} to {ratios[-1]:.2f} in {len(ratios)} rounds)"
        )
        ours = statistics.median(one[key] for one, _ in pairs)
        what = f"redo probe, {'O_DIRECT and O_DSYNC' if dsync else 'O_DIRECT'}, {key}"
        unit = "1/s" if key == "rate" else "us"
        figure(what, ours, unit, against="fio", ratio=statistics.median(ratios))


def _words(found: dict[str, float]) -> str:
    return f"{found['rate']:,.0f}/s, p50 {found['p50']:,.1f} us, p99 {found['p99']:,.1f} us"


if __name__ == "__main__":
    main()
