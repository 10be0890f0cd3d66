"""Compares `dbdyno stats test` on 8,000,000 waits, as a whole process, with scipy and pandas on the same waits.

    python benches/stats.py [--rows 8000000] [--rounds 3]

Makes one Parquet file with two groups (log-normal, with a heavy tail, whole microseconds as ns),
then runs, in turn and each as a process of its own from its start to its end:

- dbdyno: summary, Welch, Mann-Whitney, Kolmogorov-Smirnov, quantiles with intervals p50 to p99.99,
  histogram, the 10,000 longest, written as JSON;
- the peer: the same by pandas (where it is installed, else pyarrow), numpy and scipy.

Prints the seconds of each (best and median) and the ratio; the numbers of both must agree. The
peer's quantile intervals are order statistics found with scipy's binomial, its quickest way.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import figure, parse

QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999)


def make(rows: int, path: Path) -> None:
    """The waits of two arms, the second 6.6 % slower."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    arms = []
    for scale in (1.0, 1.066):
        us = rng.lognormal(np.log(500 * scale), 0.35, rows // 2)
        tail = rng.random(us.size) < 0.001
        us[tail] *= rng.pareto(1.2, tail.sum()) + 2
        arms.append(np.minimum(us, 300_000).astype(np.int64) * 1000)
    arm = pa.array(["off"] * arms[0].size + ["on"] * arms[1].size).dictionary_encode()
    table = pa.table({"arm": arm, "elapsed_ns": np.concatenate(arms)})
    pq.write_table(table, path, compression="zstd")


def peer(path: str) -> None:
    """What the peer's process does; prints JSON."""
    import numpy as np
    from scipy import stats

    try:
        import pandas as pd

        frame = pd.read_parquet(path)
        groups = {str(name): part.to_numpy() for name, part in frame.groupby("arm", observed=True)["elapsed_ns"]}
    except ImportError:
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        groups = {
            str(name): table.filter(pc.equal(table["arm"], name))["elapsed_ns"].to_numpy()
            for name in pc.unique(table["arm"]).to_pylist()
        }
    a, b = groups.values()
    answer: dict[str, object] = {}
    for name, values in groups.items():
        ordered = np.sort(values)
        n = ordered.size
        rows = []
        for q in QUANTILES:
            low, high = stats.binom.ppf([0.025, 0.975], n, q).astype(int)
            rows.append([float(np.quantile(ordered, q)), int(ordered[low]), int(ordered[high])])
        counts, edges = np.histogram(values, bins=np.geomspace(values.min(), values.max(), 400))
        answer[name] = {
            "mean": values.mean(),
            "sd": values.std(ddof=1),
            "min": int(values.min()),
            "max": int(values.max()),
            "quantiles": rows,
            "histogram": counts.tolist(),
            "edges": edges.tolist(),
        }
    for test, found in (
        ("t", stats.ttest_ind(b, a, equal_var=False)),
        ("u", stats.mannwhitneyu(b, a)),
        ("d", stats.ks_2samp(b, a)),
    ):
        answer[test] = [float(found.statistic), float(found.pvalue)]
    both = np.concatenate([a, b])
    longest = np.argpartition(both, -10_000)[-10_000:]
    longest = longest[np.argsort(-both[longest])]
    answer["longest"] = [[int(both[at]), int(at)] for at in longest]
    print(json.dumps(answer))


def timed(command: list[str]) -> tuple[float, str]:
    """Seconds from the start of the process to its end, and what it printed."""
    started = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.perf_counter() - started, done.stdout


def agree(ours: dict[str, list[dict[str, object]]], theirs: dict[str, list[object]]) -> None:
    """The numbers that both give are the same."""
    for row, key in zip(ours["tests"], "tud", strict=True):
        expected = float(theirs[key][0])  # type: ignore[arg-type]
        assert abs(float(row["statistic"]) / expected - 1) < 1e-9, (row, expected)  # type: ignore[arg-type]
    assert [row["value"] for row in ours["longest"]] == [row[0] for row in theirs["longest"]]  # type: ignore[index]


def main() -> None:
    """Alternating rounds; the best and the median of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parse(parser, rows=100_000, rounds=1)
    if options.peer:
        peer(options.peer)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "waits.parquet"
        make(options.rows, path)
        dbdyno = [sys.executable, "-m", "dbdyno", "stats", "test", str(path), "--by", "arm"]
        commands = {
            "dbdyno": [*dbdyno, "--longest", "10000", "--format", "json"],
            "peer": [sys.executable, __file__, "--peer", str(path)],
        }
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(options.rounds):
            answers = {}
            for name, command in commands.items():
                taken, text = timed(command)
                seconds[name].append(taken)
                answers[name] = json.loads(text)
            agree(answers["dbdyno"], answers["peer"])
    for name, taken in seconds.items():
        print(f"{name}: best {min(taken):.2f} s, median {statistics.median(taken):.2f} s")
    ours, theirs = statistics.median(seconds["dbdyno"]), statistics.median(seconds["peer"])
    print(f"{options.rows} values: peer / dbdyno {theirs / ours:.1f}")
    figure(f"stats test on {options.rows:,} waits", ours, "s", against="pandas and scipy", ratio=ours / theirs)


if __name__ == "__main__":
    main()
