"""Measures how often two periods of the same load are called better or worse, and how often a planted change is
found.

    python benches/verdict.py [--pairs 200] [--seed 1] [--real SECONDS] [--smoke]

Made stores: statements whose calls and times are drawn, eight sub-intervals a period, each pair in a place of its own.
Every statement's mean time has noise of 4 %, the machine's of 3 % that lasts (autocorrelation 0.5). Six loads:

- steady: the same rate all the time
- bursty: four times the rate in a third of the sub-intervals, a call 10 % dearer then
- bimodal: a statement that finds its pages or does not, ten times apart, in stretches
- slope: the rate doubles from the first sub-interval to the last
- batch: a job that takes as much as all the rest, in one sub-interval of five
- almost idle: some ten calls a sub-interval

Columns: called worse or better (false without a change; aim at most 5 % of all), called "no change larger than ..."
(aim at least 80 % where the load is steady), and `snap report` of both periods together with a title that something
changed inside. Then changes of 10, 25 and 100 % of database time: how often they were called worse.

`--real` records such loads on a PostgreSQL of its own for so many seconds each, and judges neighbouring periods of
eight sub-intervals of half a second; the made ones and the planted changes are left out then.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from figures import ROOT, SMOKE, figure, parse

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "snapshot")]

SLOTS = 5 if SMOKE else 8
CALLS = {1: 3000, 2: 1200, 3: 300, 4: 3000, 5: 12}
MEANS_MS = {1: 0.1, 2: 0.4, 3: 2.0, 4: 0.05, 5: 8.0}
OWN, MACHINE, LASTING = 0.04, 0.03, 0.5
KINDS = ("steady", "bursty", "bimodal", "slope", "batch", "almost idle")
GROWN = (0.1, 0.25, 1.0)


@dataclass
class Minute:
    """What is drawn for a sub-interval: how many times the usual rate, and how many times as dear each statement is."""

    load: float
    dear: dict[int, float]
    job: bool = False


def minutes(kind: str, rng: Any, count: int) -> Iterator[Minute]:
    """The sub-intervals of a load without a change."""
    machine = rng.normal(0, MACHINE)
    burst, missing = rng.random() < 1 / 3, rng.random() < 0.5
    for at in range(count):
        machine = LASTING * machine + math.sqrt(1 - LASTING**2) * rng.normal(0, MACHINE)
        dear = {one: math.exp(machine + rng.normal(0, OWN)) for one in MEANS_MS}
        load = 1.0
        if kind == "bursty":
            burst = burst if rng.random() < 0.5 else rng.random() < 1 / 3
            load = 4.0 if burst else 1.0
            dear = {one: value * (1.1 if burst else 1.0) for one, value in dear.items()}
        elif kind == "bimodal":
            missing = missing if rng.random() < 0.5 else rng.random() < 0.5
            dear[3] *= 1.8 if missing else 0.2
        elif kind == "slope":
            load = 1 + at / count
        elif kind == "almost idle":
            load = 10 / sum(CALLS.values())
        yield Minute(load, dear, job=kind == "batch" and rng.random() < 0.2)


def stretch(server: Any, rng: Any, drawn: list[Minute], grown: float) -> tuple[int, int]:
    """The first and last snapshot of sub-intervals in which every statement is so much dearer."""
    first = last = server.step(commits=600).number
    for one in drawn:
        for statement, usual in CALLS.items():
            calls = int(rng.poisson(usual * one.load))
            if calls:
                server.call(statement, calls, calls * MEANS_MS[statement] * one.dear[statement] * (1 + grown))
        if one.job:
            server.call(6, 1, 1500.0 * math.exp(rng.normal(0, OWN)) * (1 + grown))
        last = server.step(commits=round(600 * one.load)).number
    return first, last


def judged(kind: str, pairs: int, seed: int, grown: float = 0.0) -> dict[str, float]:
    """The shares of pairs by what they were called, of a load with a change in the second period."""
    from made_store import MadeServer

    rng = np.random.default_rng([seed, KINDS.index(kind), round(100 * grown)])
    words: list[str] = []
    inside = 0
    for _ in range(pairs):
        with tempfile.TemporaryDirectory() as folder:
            server = MadeServer(Path(folder) / "snaps")
            drawn = list(minutes(kind, rng, 2 * SLOTS))
            stretch(server, rng, list(minutes(kind, rng, 1)), 0.0)
            ends = [stretch(server, rng, part, more) for part, more in ((drawn[:SLOTS], 0.0), (drawn[SLOTS:], grown))]
            words.append(word_of_pair(server.store, *ends))
            inside += not grown and titled(server.store, *ends)
    return shares(words) | {"inside": inside / pairs}


def recorded(kind: str, seconds: float, seed: int) -> dict[str, float]:
    """The shares of pairs by what they were called, of a load without a change on a real server."""
    import recorded_loads

    rng = np.random.default_rng([seed, KINDS.index(kind)])
    words: list[str] = []
    inside = 0
    with recorded_loads.server() as target:
        for store, *ends in recorded_loads.pairs(target, kind, seconds, SLOTS, rng):
            words.append(word_of_pair(store, *ends))
            inside += titled(store, *ends)
    return shares(words) | {"inside": inside / len(words), "pairs": len(words)}


def word_of_pair(store: Any, *ends: tuple[int, int]) -> str:
    """What the comparison of two periods says."""
    from dbdyno.judge.snapshots import compare
    from dbdyno.snapshot.reading.periods import period

    return str(compare(store, *(period(store, f"snap:{a}..{b}") for a, b in ends))["verdict"]["word"])


def titled(store: Any, first: tuple[int, int], last: tuple[int, int]) -> bool:
    """Whether the report of both periods together is titled as a change."""
    from dbdyno.judge.interval_report import judged_report
    from dbdyno.snapshot.reading.interval import Interval
    from dbdyno.snapshot.reading.periods import period

    chain = period(store, f"snap:{first[0]}..{last[1]}").chain
    with Interval(store, chain[0], chain[-1], chain) as interval:
        return judged_report(interval, 10)["verdict"]["word"] in ("worse", "better")


def shares(words: list[str]) -> dict[str, float]:
    """The share of each word."""
    return {word: words.count(word) / len(words) for word in ("worse", "better", "ok", "cannot tell")}


def main() -> int:
    """Prints both tables; 1 where a rate is beyond its aim by more than chance."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=200, help="over the six loads; a power of the same number each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--real", type=float, metavar="SECONDS", help="of recording, for each load")
    given = parse(parser, pairs=1)
    begin = time.perf_counter()
    each = math.ceil(given.pairs / len(KINDS))
    if given.real:
        rows = {kind: recorded(kind, given.real, given.seed) for kind in KINDS}
        each = round(min(row["pairs"] for row in rows.values()))
    else:
        # Kinds differ in what is drawn; a smoke has one of each shape, and the steady one with a planted change.
        kinds = ("bursty", "bimodal", "batch") if SMOKE else KINDS
        rows = {kind: judged(kind, each, given.seed) for kind in kinds}
    print(f"seed {given.seed}, {each} pairs a load, {SLOTS} sub-intervals a period")
    false, inside = equal_periods(rows, "recorded" if given.real else "equal")
    if not given.real:
        changed_periods(each, given.seed, *((KINDS[:1], GROWN[-1:]) if SMOKE else (KINDS, GROWN)))
    print(f"{time.perf_counter() - begin:.0f} s")
    return 1 if each > 10 and (max(false, inside) > 0.05 or rows["steady"]["ok"] < 0.8) else 0


def equal_periods(rows: dict[str, dict[str, float]], kind_of: str) -> tuple[float, float]:
    """Prints what equal periods were called; the shares of false verdicts and of reports titled as a change."""
    print(f"{kind_of:16s} {'worse':>8s} {'better':>8s} {'no change':>10s} {'cannot tell':>12s} {'report':>8s}")
    for kind, row in rows.items():
        print(
            f"{kind:16s} {row['worse']:8.1%} {row['better']:8.1%} {row['ok']:10.1%} {row['cannot tell']:12.1%}"
            f" {row['inside']:8.1%}"
        )
        aim = ">= 80 %" if kind == "steady" else ""
        figure(f"{kind_of} periods, {kind}: called no change", 100 * row["ok"], "% of pairs", aim=aim)
    false = sum(row["worse"] + row["better"] for row in rows.values()) / len(rows)
    inside = sum(row["inside"] for row in rows.values()) / len(rows)
    print(f"false: {false:.1%} of all pairs (aim 5 %), of reports {inside:.1%}")
    figure(f"{kind_of} periods, all six loads: called better or worse", 100 * false, "% of pairs", aim="<= 5 %")
    figure(f"reports of {kind_of} periods: titled as a change", 100 * inside, "% of reports", aim="<= 5 %")
    return false, inside


def changed_periods(each: int, seed: int, kinds: tuple[str, ...], changes: tuple[float, ...]) -> None:
    """Prints how many pairs with a planted change were called worse."""
    print(f"{'called worse of':16s} " + " ".join(f"{f'+{grown:.0%}':>8s}" for grown in changes))
    for kind in kinds:
        found = [judged(kind, each, seed, grown)["worse"] for grown in changes]
        print(f"{kind:16s} " + " ".join(f"{share:8.1%}" for share in found))
        for grown, share in zip(changes, found, strict=False):
            figure(f"{grown:.0%} more database time, {kind}: called worse", 100 * share, "% of pairs")


if __name__ == "__main__":
    sys.exit(main())
