"""Time of `dbdyno --help` against a bare interpreter: medians of 20 runs in turn."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time


def timed(*words: str) -> float:
    """Seconds of one command."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    """Prints both medians and their ratio."""
    pairs = [(timed("-c", "pass"), timed("-m", "dbdyno", "--help")) for _ in range(20)]
    bare, helped = (statistics.median(times) * 1e3 for times in zip(*pairs, strict=True))
    print(f"dbdyno --help {helped:.0f} ms, python -c pass {bare:.0f} ms, ratio {helped / bare:.1f}")


if __name__ == "__main__":
    main()
