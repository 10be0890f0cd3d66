"""Two load generators in turn on one server: throughput ratio and client CPU per transaction, with intervals.

The order is ABBA, so that a machine that speeds up or slows down favours neither; the first turns do not count, unless
there is one pair only. The interval is over pairs (t on log ratios).
"""

from __future__ import annotations

import argparse
import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from engine import PgbenchResult
from figures import figure
from scipy import stats

from dbdyno import _core

Run = Callable[[float], PgbenchResult]
"""A run of the peer, given the seconds under load."""


def options(about: str | None) -> argparse.ArgumentParser:
    """The options of a comparison."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--alone", action="store_true", help="ahead of everybody else's work (Linux, root)")
    return parser


def dyno(spec: Any, seconds: float) -> PgbenchResult:
    """One run of dbdyno's load generator in this process, evidence into a temporary folder. Throughput is that of the
    time under load; the CPU includes recording, encoding and writing the Parquet part."""
    load = _core.Load(spec)
    with tempfile.TemporaryDirectory() as folder:
        load.connect(0)
        before = os.times()
        load.begin_block(Path(folder), "b")
        report = load.run(0, [(0, 0, round(seconds * 1e9), None)])
        load.end_block()
        after = os.times()
        load.disconnect(0)
    cpu = after.user + after.system - before.user - before.system
    arm = report["arms"][0]
    assert arm["errors"] == 0, arm
    sessions = spec["arms"][0]["sessions"]
    return PgbenchResult(arm["transactions"] * sessions * 1e9 / arm["busy_ns"], cpu * 1e6 / arm["transactions"])


def compare(name: str, peer: str, theirs: Run, ours: Any, given: argparse.Namespace) -> None:
    """Pairs of the peer's run and of our load's, in the order ABBA; prints one line."""
    runs = (functools.partial(theirs, given.seconds), functools.partial(dyno, ours, given.seconds))
    seen, pairs = [], given.pairs
    warm = 1 if pairs > 1 else 0
    for pair in range(pairs + warm):
        got = {which: runs[which]() for which in ([0, 1] if pair % 2 else [1, 0])}
        if pair >= warm:
            seen.append((got[0].tps, got[1].tps, got[0].cpu_us, got[1].cpu_us))
    found = np.array(seen)
    middle = np.median(found, axis=0)
    print(
        f"{name}: {peer} {middle[0]:8.0f} tps {middle[2]:6.1f} us CPU; "
        f"dbdyno {middle[1]:8.0f} tps {middle[3]:6.1f} us CPU; "
        f"throughput ratio {words(np.log(found[:, 1] / found[:, 0]))}, "
        f"CPU ratio {words(np.log(found[:, 3] / found[:, 2]))}",
        flush=True,
    )
    for what, unit, theirs, ours in (("throughput", "1/s", 0, 1), ("CPU of a transaction", "us", 2, 3)):
        ratio, low, high = interval(np.log(found[:, ours] / found[:, theirs]))
        figure(f"{name}: {what}", middle[ours], unit, against=peer, ratio=ratio, interval=(low, high))


def alone(server: int | None) -> None:
    """Puts the server and this process, in a session of its own, ahead of everybody else's work. Linux shares the
    processor between sessions first (sched_autogroup): a server is a session, and `nice` acts only within one."""
    if os.getsid(0) != os.getpid():
        os.setsid()
    for process in (server, os.getpid()):
        Path(f"/proc/{process}/autogroup").write_text("-15")


def interval(logs: np.ndarray) -> tuple[float, float, float]:
    """Ratio and its 95 % interval, not known of one pair."""
    if len(logs) < 2:
        return float(np.exp(logs[0])), float("nan"), float("nan")
    half = stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    middle = logs.mean()
    return float(np.exp(middle)), float(np.exp(middle - half)), float(np.exp(middle + half))


def words(logs: np.ndarray) -> str:
    """The same as text."""
    ratio, low, high = interval(logs)
    return f"{ratio:.3f} ({low:.3f} to {high:.3f})"
