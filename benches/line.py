"""Measures the accuracy and the own cost of the line that `network = {delay = ...}` puts between sessions and server.

    python benches/line.py [--seconds 6]

One script, `select 1;`, in turn without a line and over lines of several delays. The error of a round trip is its
time less the median without a line and less twice the delay: what the line's own thread adds. Then the rate: a large
result at 100 Mbit/s against the time that its bits take.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import duckdb
import numpy as np
from engine import engine, load_spec
from figures import SMOKE, figure, parse

from dbdyno import _core
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.server import Postgres

DELAYS_MS = (0, 1, 5, 20)
SLICE_NS = 100_000_000 if SMOKE else 250_000_000
WARMING = 0 if SMOKE else 10
"""The first transactions of an arm, which are left out."""
RATE = 100_000_000
BYTES = 2_500_000


def times(spec: JsonObject, slices: list[tuple[int, int, int | None, int | None]]) -> JsonObject:
    """Nanoseconds of every transaction by arm, and the load's report."""
    load = _core.Load(spec)
    with tempfile.TemporaryDirectory() as folder:
        for arm in range(len(spec["arms"])):
            load.connect(arm)
        load.begin_block(Path(folder), "b")
        report = load.run(0, slices)
        load.end_block()
        rows = duckdb.execute(
            f"select arm, list(elapsed_ns order by started_ns) from '{folder}/b.parquet'"
            " where kind = 'transaction' group by arm"
        ).fetchall()
    return {"report": report, **{name: np.array(own, dtype=float)[WARMING:] for name, own in rows}}


def delays(target: Postgres, sessions: int, seconds: float) -> None:
    """Prints a line per delay."""
    spec = load_spec(target, "select 1;", sessions)
    base = spec["arms"][0]
    spec["arms"] = [{**base, "name": "none"}] + [
        {**base, "name": f"{ms} ms", "network": {"delay_ns": ms * 1_000_000, "rate_bit_per_s": None}}
        for ms in DELAYS_MS
    ]
    arms = len(spec["arms"])
    slices = [(number % arms, number, SLICE_NS, None) for number in range(round(seconds * 1e9 / SLICE_NS) * arms)]
    found = times(spec, slices)
    none = float(np.median(found["none"]))
    most = float(np.quantile(found["none"], 0.99))
    print(f"{sessions} session(s): without a line p50 {none / 1e3:.1f} us, p99 {most / 1e3:.1f} us")
    for ms, line in zip(DELAYS_MS, found["report"]["lines"], strict=True):
        error = (found[f"{ms} ms"] - none - 2e6 * ms) / 1e3
        p50, p99 = np.quantile(error, [0.5, 0.99])
        late = line["late_ns"] / max(line["pieces"], 1) / 1e3
        print(
            f"  delay {ms:2d} ms: a round trip's error p50 {p50:7.1f} us, p99 {p99:7.1f} us,"
            f" least {error.min():7.1f} us ({error.size} round trips); the line by itself late {late:.1f} us on average"
        )
        figure(f"a line of {ms} ms, {sessions} session(s): error of a round trip", float(p50), "us")


def rate(target: Postgres, count: int) -> None:
    """Prints how long a large result took against what its bits take."""
    spec = load_spec(target, f"select repeat('x', {BYTES});", 1)
    spec["arms"][0] |= {"name": "narrow", "network": {"delay_ns": 0, "rate_bit_per_s": RATE}}
    took = times(spec, [(0, 0, None, count)])["narrow"] / 1e6
    expected = BYTES * 8e3 / RATE
    print(
        f"{BYTES:,} bytes at 100 Mbit/s: {np.median(took):.2f} ms (p50), {np.quantile(took, 0.99):.2f} ms (p99);"
        f" their bits take {expected:.2f} ms"
    )
    middle = float(np.median(took))
    figure("2.5 MB at 100 Mbit/s", middle, "ms", against="their bits", ratio=middle / expected)


def main() -> None:
    """Both, on a server of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6, help="of each delay")
    options = parse(parser, seconds=0.1)
    with engine(1) as target:
        for sessions in (1, 8):
            delays(target, sessions, options.seconds)
        rate(target, 1 if SMOKE else 30)


if __name__ == "__main__":
    main()
