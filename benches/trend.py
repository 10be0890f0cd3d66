"""Measures how often `dbdyno trend` reports a change where there is none, and how often it finds a step of 10 %.

    python benches/trend.py [--series 2000] [--runs 40] [--seed 1] [--smoke] [--otava PYTHON]

Each row is one kind of series of 40 runs with noise of 5 %, tested at 95 %. Columns: reported as a change at a run; as
a move that happened at once or slowly; as a drift; any of these. For kinds without a change all of them are false, for
drifting ones the change at a run; for steps `any` is the power. Aim: at most 6 % false in each row that says so.

`--otava` names the Python of an environment that has `apache-otava`: the same series are given to
`compute_change_points` of its `otava.analysis` with its default parameters, and once more with its limit of p at 0.05.
`--smoke` takes 20 series a row.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from figures import figure, parse

NOISE, STEP, LEVEL = 0.05, 0.10, 0.95
AIM = "at most 6 %"
PEER = """
import sys
import numpy as np
from otava.analysis import compute_change_points
kinds = np.load(sys.argv[1])
for name in kinds.files:
    rows = [list(row) for row in kinds[name]]
    print(*(np.mean([bool(compute_change_points(row, max_pvalue=p)[0]) for row in rows]) for p in (0.001, 0.05)))
"""


def alike(rng: Any, series: int, runs: int, rho: float) -> Any:
    """Noise of 5 % whose neighbours have this autocorrelation."""
    rows = rng.normal(0, NOISE, (series, runs))
    rows[:, 1:] *= math.sqrt(1 - rho**2)
    for at in range(1, runs):
        rows[:, at] += rho * rows[:, at - 1]
    return rows


def modes(rng: Any, series: int, runs: int, share: float, stay: float = 0.0) -> Any:
    """Series that jump between two modes 20 % apart: drawn anew each run, or left with a chance of 1 - stay."""
    import numpy as np

    upper = rng.random((series, runs)) < share
    if stay:
        jumps = rng.random((series, runs)) >= stay
        jumps[:, 0] = upper[:, 0]
        upper = np.cumsum(jumps, axis=1) % 2 == 1
    return math.log(1.2) * upper + alike(rng, series, runs, 0)


def doubled(rng: Any, rows: Any) -> Any:
    """The rows with one value of each doubled."""
    import numpy as np

    rows[np.arange(len(rows)), rng.integers(0, rows.shape[1], len(rows))] += math.log(2)
    return rows


def kinds(seed: int, series: int, runs: int) -> Iterator[tuple[str, str, Any]]:
    """Name, what is aimed at, and the logs of each kind of series."""
    import numpy as np

    rng, at = np.random.default_rng(seed), np.arange(runs)
    late, line = runs - 5, at / (runs - 1)

    def noise(rho: float = 0) -> Any:
        return alike(rng, series, runs, rho)

    yield "independent", AIM, noise()
    for rho in (0.3, 0.6, 0.9):
        yield f"autocorrelated {rho}", AIM, noise(rho)
    yield "two modes, half each", AIM, modes(rng, series, runs, 0.5)
    yield "two modes, one in five", AIM, modes(rng, series, runs, 0.2)
    yield "two modes, 4 of 5 stay", "", modes(rng, series, runs, 0.5, 0.8)
    yield "one value doubled", AIM, doubled(rng, noise())
    yield "doubled, autocorrelated 0.6", AIM, doubled(rng, noise(0.6))
    yield "heavy tails (t, 3 df)", AIM, NOISE * rng.standard_t(3, (series, runs))
    for drift in (0.05, 0.1, 0.2, 0.4):
        yield f"drift of {drift:.0%}", "change " + AIM, math.log1p(drift) * line + noise()
    yield "drift of 20%, autocorrelated 0.6", "", math.log(1.2) * line + noise(0.6)
    yield "slow wave of +-5%", "", 0.05 * np.sin(2 * np.pi * (line + rng.random((series, 1)))) + noise()
    yield "STEP at run 20", "power", math.log1p(STEP) * (at >= runs // 2) + noise()
    yield "STEP 5 runs ago", "power", math.log1p(STEP) * (at >= late) + noise()
    yield "STEP at run 20, autocorrelated 0.3", "power", math.log1p(STEP) * (at >= runs // 2) + noise(0.3)
    yield "STEP of 14 runs, then back", "power", math.log1p(STEP) * ((at >= 13) & (at < 27)) + noise()


def rates(rows: Any) -> tuple[float, float, float, float]:
    """Return the shares of rows reported as a change, as a step or a drift, as a drift, and as any of these."""
    from dbdyno.stats.level_chances import classify

    told = classify(rows, level=LEVEL)
    change, either, drift = (float(flags.mean()) for flags in (told.two | told.step, told.either, told.drift))
    return change, either, drift, change + either + drift


def peer(python: str, every: list[tuple[str, str, Any]]) -> list[str]:
    """The shares of series in which otava finds a change, a line for each kind."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "series.npz"
        np.savez(path, **{name: np.exp(rows) for name, _, rows in every})
        done = subprocess.run([python, "-c", PEER, str(path)], capture_output=True, text=True, check=True)
    return [" ".join(f"{float(share):8.1%}" for share in line.split()) for line in done.stdout.splitlines()]


def main() -> int:
    """Prints the table; 1 where a false rate is beyond its aim by more than chance."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--otava", metavar="PYTHON")
    given = parse(parser, series=20)
    series = given.series
    print(f"seed {given.seed}, {series} series a row, {given.runs} runs, noise {NOISE:.0%}, level {LEVEL:.0%}")
    begin, every = time.perf_counter(), list(kinds(given.seed, series, given.runs))
    others = peer(given.otava, every) if given.otava else [""] * len(every)
    columns = [
        f"{name:>8s}" for name in ("change", "either", "drift", "any", *(["otava", "p<.05"] if given.otava else []))
    ]
    print(f"{'series':36s} " + " ".join(columns))
    beyond = []
    for (name, aim, rows), other in zip(every, others, strict=True):
        found = rates(rows)
        print(f"{name:36s} " + " ".join(f"{share:8.1%}" for share in found) + f" {other}  {aim}")
        figure(
            f"trend, {name}",
            100 * (found[0] if aim.startswith("change") else found[3]),
            "% reported as a change",
            aim=aim,
        )
        false = found[0] if aim.startswith("change") else found[3] if aim == AIM else 0.0
        if false > 0.06 + 3 * math.sqrt(0.06 * 0.94 / series):
            beyond.append(name)
    print(f"{time.perf_counter() - begin:.1f} s" + (f"; beyond the aim: {', '.join(beyond)}" if beyond else ""))
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
