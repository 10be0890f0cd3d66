"""Compares dbdyno's summary of 8 million operations in 20 blocks with the same summary by DuckDB.

    python benches/analysis.py [--rows 8000000]

Both read the same Parquet parts and give, per block and arm: count, mean, exact p50, p90, p99,
p99.9 and the maximum. Prints seconds of each, the best of three, and the ratio; the numbers must
agree.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
from figures import ROOT, example, figure, parse

from dbdyno import _core

QUANTILES = [0.5, 0.9, 0.99, 0.999]


def make(rows: int, folder: str) -> list[Path]:
    """Writes the parts with the example `capture`."""
    capture = [*example("capture"), str(rows), "20", folder]
    subprocess.run(capture, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return sorted(Path(folder).glob("*.parquet"))


def ours(parts: list[Path]) -> dict[tuple[int, str], list[float]]:
    """Summaries by dbdyno's kernel."""
    rows = _core.summarise([[(path, [])] for path in parts], QUANTILES)
    return {(r["group"], r["arm"]): [r["count"], r["mean_ns"], *r["quantiles_ns"], r["max_ns"]] for r in rows}


def theirs(parts: list[Path]) -> dict[tuple[int, str], list[float]]:
    """The same by DuckDB."""
    names = ", ".join(f"'{path}'" for path in parts)
    rows = duckdb.sql(
        f"select block, arm, count(*), avg(elapsed_ns), quantile_cont(elapsed_ns, {QUANTILES}),"
        f" max(elapsed_ns) from read_parquet([{names}]) where kind = 'transaction'"
        " and error is null group by all"
    ).fetchall()
    return {(block, arm): [n, mean, *q, top] for block, arm, n, mean, q, top in rows}


def main() -> None:
    """Best of three of each, in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    rows = parse(parser, rows=20_000).rows
    with tempfile.TemporaryDirectory() as folder:
        parts = make(rows, folder)
        best = {"dbdyno": float("inf"), "duckdb": float("inf")}
        for _ in range(3):
            for name, function in (("dbdyno", ours), ("duckdb", theirs)):
                started = time.perf_counter()
                found = function(parts)
                best[name] = min(best[name], time.perf_counter() - started)
                if name == "dbdyno":
                    reference = found
        assert reference.keys() == found.keys()
        for key, values in reference.items():
            assert np.allclose(values, found[key], rtol=1e-9), key
    print(
        f"{rows} operations in 20 blocks: dbdyno {best['dbdyno']:.2f} s,"
        f" duckdb {best['duckdb']:.2f} s,"
        f" ratio {best['duckdb'] / best['dbdyno']:.1f}"
    )
    figure(
        f"summary of {rows:,} operations in 20 blocks",
        best["dbdyno"],
        "s",
        against="DuckDB",
        ratio=best["dbdyno"] / best["duckdb"],
    )


if __name__ == "__main__":
    main()
