"""Converts traces to Parquet and to a profile, compared with `wc -l` and a plain reader on the same file.

    python benches/traces.py [--source FILE] [--megabytes 200]

The inputs are SOURCE (default: a trace of our own making, dense in waits) and one of deep recursion,
replicated with shifted time. Printed for each: MB per CPU-second and peak memory of `dbdyno trace
import`; MB/s of `dbdyno trace profile` and of `wc -l` in turn, and their ratio. Then the same on ten
times the first file with --long; the commands on 5,000 small files and on 10,001 statements; and a
plain Python reader with a regular expression per record kind on the first part, as the peers are
built. Best of several, with the range; Python's bytecode is kept between the runs, as that of a
package that was installed is. The load of the machine is printed at both ends.
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

from figures import figure, parse
from replicate import fixture, replicate
from trace_kinds import deep, many_statements, small_files

DBDYNO = [str(Path(sys.executable).with_name("dbdyno"))]
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


def to_parquet(what: str, trace: Path, folder: Path, rounds: int) -> None:
    """Import of the trace: CPU and memory of the whole process, best of the rounds."""
    size = trace.stat().st_size / 1e6
    runs = []
    out = folder / "run"
    for _ in range(rounds):
        shutil.rmtree(out, ignore_errors=True)
        runs.append(measured([*DBDYNO, "trace", "import", str(trace), "--out", str(out)]))
    rates = sorted(size / cpu for _, cpu, _ in runs)
    written = sum(file.stat().st_size for file in out.rglob("*.parquet")) / 1e6
    print(
        f"import, {what}, {size:.0f} MB: {rates[-1]:.0f} MB per CPU-second ({rates[0]:.0f} to {rates[-1]:.0f}), "
        f"peak {max(peak for _, _, peak in runs):.0f} MB, {written:.1f} MB of Parquet"
    )
    figure(f"trace import, {what}", rates[-1], "MB per CPU-second", aim="400")
    figure(f"trace import, {what}: peak memory", max(peak for _, _, peak in runs), "MB", aim="< 200")


def profile_against_wc(what: str, trace: Path, rounds: int) -> None:
    """Profile and `wc -l` in turn: the ratio of their rates, whole process and reading alone."""
    size = trace.stat().st_size / 1e6
    rates: dict[str, list[float]] = {"profile": [], "inside": [], "wc -l": []}
    peaks = []
    for _ in range(rounds):
        wall, _, peak = measured([*DBDYNO, "trace", "profile", str(trace), "--format", "json"])
        peaks.append(peak)
        rates["profile"].append(size / wall)
        rates["inside"].append(size / _reading(trace))
        wall, _, _ = measured(["wc", "-l", str(trace)])
        rates["wc -l"].append(size / wall)
    best = {name: max(values) for name, values in rates.items()}
    ratios = sorted(a / b for a, b in zip(rates["profile"], rates["wc -l"], strict=True))
    print(
        f"profile, {what}, {size:.0f} MB: {best['profile']:.0f} MB/s as a whole process, "
        f"{best['inside']:.0f} MB/s reading; wc -l {best['wc -l']:.0f} MB/s; "
        f"ratio {best['profile'] / best['wc -l']:.2f} and {best['inside'] / best['wc -l']:.2f}; "
        f"in turn {ratios[0]:.2f} to {ratios[-1]:.2f}; peak {max(peaks):.0f} MB"
    )
    ratio = best["profile"] / best["wc -l"]
    figure(f"trace profile, {what}", best["profile"], "MB/s", against="wc -l", ratio=ratio, aim="1/3 of wc -l on waits")


def many(folder: Path, count: int, rounds: int) -> None:
    """Many small files, and twice as many statements: seconds and peak memory of each command."""
    files, statements = folder / "small", folder / "statements.trc"
    small_files(files, count)
    statements.write_bytes(many_statements(2 * count + 1))
    each, every = f"{count:,} files", f"{2 * count + 1:,} statements"
    commands = {
        f"{each}: profile": ["profile", str(files)],
        f"{each}: sql": ["sql", str(files)],
        f"{each}: waits": ["waits", str(files)],
        f"{each}: import": ["import", str(files), "--out", str(folder / "many")],
        f"{every}: sql --top 0, table": ["sql", "--top", "0", str(statements)],
        f"{every}: sql --top 0, JSON": ["sql", "--top", "0", "--format", "json", str(statements)],
    }
    for what, words in commands.items():
        runs = []
        for _ in range(rounds):
            shutil.rmtree(folder / "many", ignore_errors=True)
            runs.append(measured([*DBDYNO, "trace", *words]))
        wall, cpu, _ = min(runs)
        print(f"{what}: {wall:.2f} s, {cpu:.2f} CPU-s, peak {max(peak for _, _, peak in runs):.0f} MB")
        figure(what, wall, "s", aim="6" if "files" in what else "")
    shutil.rmtree(files)


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
    figure("plain reader in Python", len(text) / 1e6 / cpu, "MB per CPU-second")


def main() -> None:
    """The benches, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--long", action="store_true", help="ten times the file as well")
    options = parse(parser, megabytes=2, rounds=1, files=20)
    source = options.source.read_bytes() if options.source else fixture()
    with tempfile.TemporaryDirectory(prefix="dbdyno-bench-") as name:
        folder = Path(name)
        ENVIRONMENT["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        _load()
        trace = folder / "big.trc"
        for what, given in (("waits", source), ("deep recursion", deep())):
            replicate(given, trace, options.megabytes)
            to_parquet(what, trace, folder, options.rounds)
            profile_against_wc(what, trace, options.rounds)
        if options.long:
            replicate(source, trace, options.megabytes * 10)
            to_parquet("waits, long", trace, folder, options.rounds)
            profile_against_wc("waits, long", trace, options.rounds)
        many(folder, options.files, options.rounds)
        replicate(source, trace, min(options.megabytes, 20))
        plain_reader(trace)
        _load()


def _load() -> None:
    print(f"load of the machine: {', '.join(f'{load:.2f}' for load in os.getloadavg())}", flush=True)


if __name__ == "__main__":
    main()
