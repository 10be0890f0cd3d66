"""Measures the cost of keeping every operation, and checks that memory stays flat.

python benches/capture.py [--rows 50000000]
"""

from __future__ import annotations

import argparse
import re
import subprocess

from figures import ROOT, example, figure, parse


def main() -> None:
    """Runs the example `capture`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    rows = parse(parser, rows=20_000).rows
    capture = [*example("capture"), str(rows)]
    said = subprocess.run(capture, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    print(said, end="")
    numbers = [float(one) for one in re.findall(r"[\d.]+", said)]
    _, whole, written, size, early, late = numbers
    figure("keeping an operation", whole, "ns")
    figure("of it encoding and writing", written, "ns")
    figure("size of an operation on disk", size, "bytes")
    figure(f"peak memory after {rows:,} operations", late, "MiB", against="after a tenth", ratio=late / max(early, 1.0))


if __name__ == "__main__":
    main()
