"""The cost of keeping every operation, and whether memory stays flat.

python benches/capture.py [--rows 50000000]
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Runs the example `capture`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    rows = str(parser.parse_args().rows)
    capture = [
        "cargo",
        "run",
        "--release",
        "--quiet",
        "-p",
        "dyno-evidence",
        "--example",
        "capture",
    ]
    subprocess.run([*capture, "--", rows], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
