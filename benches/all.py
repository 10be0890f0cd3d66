"""All benches, one after the other: `make bench`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHES = (
    "help_time.py",
    "capture.py",
    "analysis.py",
    "stats.py",
    "traces.py",
    "model.py",
    "probe.py",
    "snapshot.py",
    "fleet.py",
    "cells.py",
    "pgbench_parity.py",
    "mysql_parity.py",
    "line.py",
    "move.py",
)


def main() -> None:
    """Runs each in a process of its own."""
    for name in BENCHES:
        print(f"== {name}", flush=True)
        subprocess.run([sys.executable, Path(__file__).with_name(name)], check=True)


if __name__ == "__main__":
    main()
