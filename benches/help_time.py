"""Compares `dbdyno --help`, `dbdyno runs` and the help of a command with the start of a bare interpreter: medians of
alternating runs.

The native program answers the first two, Python the last; `dbdyno runs` is also answered by Python, in the same
alternation. The folder has 100 runs, copies of one kept run of 6 blocks.

python benches/help_time.py [--rounds 20]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from figures import ROOT, SMOKE, figure, parse

PROGRAM = Path(sys.executable).parent / "dbdyno"
BY_PYTHON = PROGRAM.with_name("dbdyno-python")
RUNS = 2 if SMOKE else 100


def timed(words: tuple[object, ...], environment: Mapping[str, str]) -> float:
    """Seconds of one command."""
    started = time.perf_counter()
    subprocess.run(list(map(str, words)), check=True, capture_output=True, env={**os.environ, **environment})
    return time.perf_counter() - started


def runs_in(folder: Path) -> Path:
    """Fill a folder with runs: the manifest and the block records of a kept one."""
    (kept,) = (ROOT / "tests/evidence/formats/0.1.0/runs").iterdir()
    for number in range(RUNS):
        run = folder / "runs" / f"{kept.name}-{number}"
        shutil.copytree(kept / "blocks", run / "blocks")
        shutil.copy2(kept / "manifest.json", run)
    return folder / "runs"


def main() -> None:
    """Prints all medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    given = parse(parser, rounds=1)
    with tempfile.TemporaryDirectory() as name:
        folder = runs_in(Path(name))
        asked = {
            "python -c pass": (sys.executable, "-c", "pass"),
            "dbdyno --help": (PROGRAM, "--help"),
            f"dbdyno runs, {RUNS} runs": (PROGRAM, "runs", "--runs", folder),
            f"dbdyno runs, {RUNS} runs, by Python": (BY_PYTHON, "runs", "--runs", folder),
            "help of a command, by Python": (PROGRAM, "runs", "--help"),
        }
        # No record of changed settings, which only Python shows.
        environment = {"DBDYNO_STATE": str(Path(name) / "state")}
        turns = [[timed(words, environment) for words in asked.values()] for _ in range(given.rounds)]
    bare, *others = (statistics.median(times) * 1e3 for times in zip(*turns, strict=True))
    for name, ms in zip(list(asked)[1:], others, strict=True):
        print(f"{name} {ms:.1f} ms, python -c pass {bare:.1f} ms, ratio {ms / bare:.2f}")
        figure(name, ms, "ms", against="python -c pass", ratio=ms / bare)


if __name__ == "__main__":
    main()
