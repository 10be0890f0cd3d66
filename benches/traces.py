"""Traces: to Parquet and to a profile, against `wc -l` and a plain reader on the same file.

    python benches/traces.py [--source FILE] [--megabytes 200]

The input is SOURCE (default: a trace of our own making) replicated with shifted time. Printed:
MB per CPU-second and peak memory of `dbdyno trace import`; bytes per second of `dbdyno trace
profile` and of `wc -l`, alternating, the best of five, and their ratio; both for ten times the file
with --long; and a plain Python reader with a regular expression per record kind on the first part,
as the peers are built. Python's bytecode is kept between the runs, as that of a package that was
installed is.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from replicate import fixture, replicate

DBDYNO = [sys.executable, "-m", "dbdyno"]
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def measured(command: list[str]) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak MB of a command."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{command} failed")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def to_parquet(trace: Path, folder: Path) -> None:
    """Import of the trace: CPU and memory of the whole process, best of three."""
    size = trace.stat().st_size / 1e6
    best = []
    for _ in range(3):
        out = folder / "run"
        shutil.rmtree(out, ignore_errors=True)
        best.append(measured([*DBDYNO, "trace", "import", str(trace), "--out", str(out)]))
    _, cpu, peak = min(best, key=lambda run: run[1])
    written = sum(file.stat().st_size for file in out.rglob("*.parquet")) / 1e6
    print(
        f"import of {size:.0f} MB: {cpu:.2f} CPU-s, {size / cpu:.0f} MB per CPU-second, "
        f"peak {peak:.0f} MB, {written:.1f} MB of Parquet"
    )


def profile_against_wc(trace: Path) -> None:
    """Profile and `wc -l` in turn: the ratio of their rates, whole process and reading alone."""
    size = trace.stat().st_size / 1e6
    rates: dict[str, list[float]] = {"profile": [], "inside": [], "wc -l": []}
    peaks = []
    for _ in range(5):
        wall, _, peak = measured([*DBDYNO, "trace", "profile", str(trace), "--format", "json"])
        peaks.append(peak)
        rates["profile"].append(size / wall)
        rates["inside"].append(size / _reading(trace))
        wall, _, _ = measured(["wc", "-l", str(trace)])
        rates["wc -l"].append(size / wall)
    best = {name: max(values) for name, values in rates.items()}
    print(
        f"profile of {size:.0f} MB: {best['profile']:.0f} MB/s as a whole process, "
        f"{best['inside']:.0f} MB/s reading; wc -l {best['wc -l']:.0f} MB/s; "
        f"ratio {best['profile'] / best['wc -l']:.2f} and {best['inside'] / best['wc -l']:.2f}; "
        f"peak {max(peaks):.0f} MB"
    )


def _reading(trace: Path) -> float:
    """Seconds of the profile without the start of Python."""
    import json

    from dbdyno import _core

    started = time.perf_counter()
    _core.TraceJob(json.dumps({"files": [str(trace)]})).profile(json.dumps({"by": ["event"]}))
    return time.perf_counter() - started


_WAIT = re.compile(r"^WAIT #(\d+): nam='(.*)' ela=\s*(\d+) (.*?)(?: obj#=(-?\d+))? tim=(\d+)$")
_CALL = re.compile(r"^(PARSE|EXEC|FETCH|CLOSE|UNMAP) #(\d+):(.*)$")


def plain_reader(trace: Path, megabytes: int = 10) -> None:
    """A regular expression per line, a dict per record: CPU of it on the first part."""
    with trace.open("rb") as file:
        text = file.read(megabytes * 1_000_000).decode("latin-1")
    started = time.process_time()
    rows = []
    for line in text.splitlines():
        if found := _WAIT.match(line):
            rows.append(found.groups())
        elif found := _CALL.match(line):
            rows.append(dict(pair.split("=", 1) for pair in found[3].split(",")))
    cpu = time.process_time() - started
    print(f"plain Python reader: {len(text) / 1e6 / cpu:.1f} MB per CPU-second ({len(rows)} rows)")


def main() -> None:
    """The benches, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--long", action="store_true", help="ten times the file as well")
    options = parser.parse_args()
    source = options.source.read_bytes() if options.source else fixture()
    with tempfile.TemporaryDirectory(prefix="dbdyno-bench-") as name:
        folder = Path(name)
        ENVIRONMENT["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        trace = folder / "big.trc"
        replicate(source, trace, options.megabytes)
        to_parquet(trace, folder)
        if options.long:
            replicate(source, trace, options.megabytes * 10)
            to_parquet(trace, folder)
            profile_against_wc(trace)
            replicate(source, trace, options.megabytes)
        profile_against_wc(trace)
        plain_reader(trace)


if __name__ == "__main__":
    main()
