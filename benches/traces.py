"""Converts traces to Parquet and to a profile, compared with `wc -l` and a plain reader on the same file.

    python benches/traces.py [--source FILE] [--megabytes 200]

The inputs are SOURCE (default: a trace of our own making, dense in waits) and one of deep recursion,
replicated with shifted time. Printed for each: MB per CPU-second and peak memory of `dbdyno trace
import`, against a plain Python reader with a regular expression per record kind on the first part, as
the peers are built; MB/s of `dbdyno trace profile` and of `wc -l` in turn, and their ratio. Then the
same on ten times the first file with --long; `dbdyno compare` of two imports; and the commands on
5,000 small files and on 10,001 statements. Best of several, with the range; Python's bytecode is kept
between the runs, as that of a package that was installed is. The load of the machine is printed at
both ends.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import figure, parse, with_bytecode
from replicate import fixture, replicate
from trace_kinds import deep, many_statements, small_files

DBDYNO = [str(Path(sys.executable).with_name("dbdyno"))]
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


LAUNCHER = """
import json, os, subprocess, sys, time
started = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
used = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
print(json.dumps([os.waitstatus_to_exitcode(status), time.perf_counter() - started, *used]))
"""
"""Between bench and command: a new process counts the memory of the one that started it as its own peak."""


def measured(command: list[str], ends: tuple[int, ...] = (0,)) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak MB of a command that ends with one of these exit codes."""
    launched = [sys.executable, "-S", "-c", LAUNCHER, *command]
    answer = subprocess.run(launched, stdout=subprocess.PIPE, env=ENVIRONMENT, check=True)
    code, wall, cpu, peak = json.loads(answer.stdout)
    if code not in ends:
        raise SystemExit(f"{command} failed")
    return wall, cpu, peak


def to_parquet(what: str, trace: Path, folder: Path, rounds: int, aim: str) -> None:
    """Import of the trace and the plain reader in turn: CPU and memory of the whole process, best of the rounds."""
    size = trace.stat().st_size / 1e6
    runs, plain = [], []
    out = folder / "run"
    for _ in range(rounds):
        shutil.rmtree(out, ignore_errors=True)
        runs.append(measured([*DBDYNO, "trace", "import", str(trace), "--out", str(out)]))
        plain.append(plain_reader(trace))
    rates = sorted(size / cpu for _, cpu, _ in runs)
    written = sum(file.stat().st_size for file in out.rglob("*.parquet")) / 1e6
    print(
        f"import, {what}, {size:.0f} MB: {rates[-1]:.0f} MB per CPU-second ({rates[0]:.0f} to {rates[-1]:.0f}), "
        f"peak {max(peak for _, _, peak in runs):.0f} MB, {written:.1f} MB of Parquet; "
        f"plain Python reader {max(plain):.1f} MB per CPU-second, ratio {rates[-1] / max(plain):.1f}"
    )
    ratio = rates[-1] / max(plain)
    figure(f"trace import, {what}", rates[-1], "MB per CPU-second", against="plain reader", ratio=ratio, aim=aim)
    figure(f"trace import, {what}: peak memory", max(peak for _, _, peak in runs), "MB", aim="< 200")


def profile_against_wc(what: str, trace: Path, rounds: int, aim: str) -> None:
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
    figure(f"trace profile, {what}", best["profile"], "MB/s", against="wc -l", ratio=ratio, aim=aim)


READS = 2, 3
"""Reads of each execution of a compared trace, in rotation: with two round trips 2.25 waits for each call."""


def compare_imports(source: bytes, folder: Path, megabytes: int, rounds: int) -> None:
    """`dbdyno compare` of two imports of the same trace, one of them a tenth longer: CPU and memory, best of some."""
    runs = [folder / "base", folder / "other"]
    for run, more in zip(runs, (1.5, 1.65), strict=True):
        replicate(source, folder / "compared.trc", int(megabytes * more))
        measured([*DBDYNO, "trace", "import", str(folder / "compared.trc"), "--out", str(run)])
    (folder / "compared.trc").unlink()
    account = json.loads((runs[0] / "manifest.json").read_text())["totals"]["account"]
    found = [measured([*DBDYNO, "compare", *map(str, runs)], ends=(0, 1)) for _ in range(rounds)]
    cpu, peak = min(one[1] for one in found), max(one[2] for one in found)
    what = f"compare, {account['calls']:,} calls and {account['waits']:,} waits a side"
    print(f"{what}: {cpu:.2f} CPU-s, peak {peak:.0f} MB")
    figure(what, cpu, "CPU-s", aim="5")
    figure(f"{what}: peak memory", peak, "MB", aim="300")


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
    from dbdyno import _core

    started = time.perf_counter()
    _core.TraceJob(json.dumps({"files": [str(trace)]})).profile(json.dumps({"by": ["event"]}))
    return time.perf_counter() - started


_WAIT = re.compile(r"^WAIT #(\d+): nam='(.*)' ela=\s*(\d+) (.*?)(?: obj#=(-?\d+))? tim=(\d+)$")
_CALL = re.compile(r"^(PARSE|EXEC|FETCH|CLOSE|UNMAP) #(\d+):(.*)$")


def plain_reader(trace: Path, megabytes: int = 10) -> float:
    """MB per CPU-second of a regular expression per line and a dict per record, on the first part."""
    with trace.open("rb") as file:
        text = file.read(megabytes * 1_000_000).decode("latin-1")
    started = time.process_time()
    rows = []
    for line in text.splitlines():
        if found := _WAIT.match(line):
            rows.append(found.groups())
        elif found := _CALL.match(line):
            rows.append(dict(pair.split("=", 1) for pair in found[3].split(",")))
    return len(text) / 1e6 / (time.process_time() - started)


def main() -> None:
    """The benches, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--long", action="store_true", help="ten times the file as well")
    options = parse(parser, megabytes=1, rounds=1, files=20)
    source = options.source.read_bytes() if options.source else fixture()
    with tempfile.TemporaryDirectory(prefix="dbdyno-bench-") as name:
        folder = Path(name)
        ENVIRONMENT.update(with_bytecode(folder / "bytecode"))
        _load()
        trace = folder / "big.trc"
        for what, given, aims in (("waits", source, ("20", "1/3")), ("deep recursion", deep(), ("16", "1/4"))):
            replicate(given, trace, options.megabytes)
            to_parquet(what, trace, folder, options.rounds, aims[0])
            profile_against_wc(what, trace, options.rounds, aims[1])
        if options.long:
            replicate(source, trace, options.megabytes * 10)
            to_parquet("waits, long", trace, folder, options.rounds, "20")
            profile_against_wc("waits, long", trace, options.rounds, "1/3")
        trace.unlink()
        compared = source if options.source else fixture(reads=READS)
        compare_imports(compared, folder, options.megabytes, min(options.rounds, 3))
        many(folder, options.files, options.rounds)
        _load()


def _load() -> None:
    print(f"load of the machine: {', '.join(f'{load:.2f}' for load in os.getloadavg())}", flush=True)


if __name__ == "__main__":
    main()
