"""Time of `dbdyno --help` against a bare interpreter: medians of runs in turn.

python benches/help_time.py [--rounds 20]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

from figures import figure, parse


def timed(*words: str) -> float:
    """Seconds of one command."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    """Prints both medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    given = parse(parser, rounds=1)
    pairs = [(timed("-c", "pass"), timed("-m", "dbdyno", "--help")) for _ in range(given.rounds)]
    bare, helped = (statistics.median(times) * 1e3 for times in zip(*pairs, strict=True))
    print(f"dbdyno --help {helped:.0f} ms, python -c pass {bare:.0f} ms, ratio {helped / bare:.1f}")
    figure("dbdyno --help", helped, "ms", against="python -c pass", ratio=helped / bare)


if __name__ == "__main__":
    main()
