"""Compares `dbdyno --help`, and the help of a command, with the start of a bare interpreter: medians of alternating
runs.

The first is answered by the native program, the second by Python.

python benches/help_time.py [--rounds 20]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

from figures import figure, parse

PROGRAM = str(Path(sys.executable).parent / "dbdyno")


def timed(*words: str) -> float:
    """Seconds of one command."""
    started = time.perf_counter()
    subprocess.run(words, check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    """Prints all medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    given = parse(parser, rounds=1)
    asked = {"dbdyno --help": (PROGRAM, "--help"), "help of a command, by Python": (PROGRAM, "runs", "--help")}
    turns = [
        (timed(sys.executable, "-c", "pass"), *(timed(*words) for words in asked.values())) for _ in range(given.rounds)
    ]
    bare, *helped = (statistics.median(times) * 1e3 for times in zip(*turns, strict=True))
    for name, ms in zip(asked, helped, strict=True):
        print(f"{name} {ms:.1f} ms, python -c pass {bare:.1f} ms, ratio {ms / bare:.2f}")
        figure(name, ms, "ms", against="python -c pass", ratio=ms / bare)


if __name__ == "__main__":
    main()
