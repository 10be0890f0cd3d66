"""Synthetic evidence: waits that depend on each other, drift and occur in bursts, recorded in ABBA slices.

A wait is a log-normal whose logarithm is the sum of a slow autoregression (correlated over tens of
thousands of waits), a fast one, and noise of its own: lag-1 autocorrelation about 0.7 and a long
tail of it, as measured on a real server. `drift` adds a trend and a slow wave over the run; `bursts`
makes stretches of waits several times as long.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from dbdyno.stats import METRICS, BlockComparison, Verdict, block_values_of, compare_metric, decide

TYPICAL_NS = 60_000.0
SLICE_NS = 10_000_000.0
SLICES_PER_BLOCK = 16


@dataclass(frozen=True)
class Noise:
    """Variation of waits: standard deviations of their logarithm, and changes over the run."""

    own: float = 0.2
    fast: float = 0.2
    slow: float = 0.25
    drift: float = 0.0
    bursts: float = 0.0


STEADY = Noise()
ROUGH = Noise(drift=0.5, bursts=3.0)


def _autoregression(rng: np.random.Generator, n: int, keep: float, sd: float) -> NDArray[np.float64]:
    """Return a stationary AR(1) series with lag-1 correlation `keep` and standard deviation `sd`."""
    steps = rng.standard_normal(n) * sd * np.sqrt(1 - keep * keep)
    steps[0] = rng.standard_normal() * sd
    return np.asarray(lfilter([1.0], [1.0, -keep], steps))


def waits(rng: np.random.Generator, n: int, noise: Noise) -> NDArray[np.float64]:
    """Return `n` successive waits of one session [ns]."""
    log = (
        rng.standard_normal(n) * noise.own
        + _autoregression(rng, n, 0.6, noise.fast)
        + _autoregression(rng, n, 0.9999, noise.slow)
    )
    at = np.linspace(0.0, 1.0, n)
    swell = np.sin(2 * np.pi * (at * rng.uniform(1, 4) + rng.random()))
    log += noise.drift * (rng.choice([-1.0, 1.0]) * at + 0.4 * swell)
    if noise.bursts:
        for start in rng.integers(0, n, rng.poisson(n / 5000)):
            log[start : start + rng.integers(20, 300)] += np.log(noise.bursts)
    return np.exp(log) * TYPICAL_NS


def experiment(
    rng: np.random.Generator, blocks: int, noise: Noise, *, effect: float = 0.0
) -> dict[str, NDArray[np.float64]]:
    """Run two arms in slices, with four quads per block, each randomly ABBA or BAAB. The second arm's waits are longer
    by `effect`. Return for each metric an array (2, blocks) of block values.
    """
    per_block = SLICES_PER_BLOCK * SLICE_NS
    n = int(blocks * per_block / TYPICAL_NS * 1.5)
    elapsed = waits(rng, n, noise)
    at = np.cumsum(elapsed)
    while at[-1] < blocks * per_block:  # a slow machine does fewer operations, a fast one more
        elapsed = np.concatenate([elapsed, elapsed[::-1]])
        at = np.cumsum(elapsed)
    cut = np.searchsorted(at, np.arange(blocks * SLICES_PER_BLOCK + 1) * SLICE_NS)
    quads = rng.integers(0, 2, blocks * SLICES_PER_BLOCK // 4)
    arm_of_slice = (np.array([0, 1, 1, 0]) ^ quads[:, None]).ravel()
    values: dict[str, NDArray[np.float64]] = {m.name: np.empty((2, blocks)) for m in METRICS}
    for block in range(blocks):
        first = block * SLICES_PER_BLOCK
        for arm in (0, 1):
            mine = [
                elapsed[cut[s] : cut[s + 1]] for s in range(first, first + SLICES_PER_BLOCK) if arm_of_slice[s] == arm
            ]
            taken = np.concatenate(mine) * (1.0 + effect * arm)
            for name, value in block_values_of(taken, float(taken.sum()) / 1e9).items():
                values[name][arm, block] = value
    return values


def compared(values: dict[str, NDArray[np.float64]]) -> list[BlockComparison]:
    """Compare all metrics of an experiment, without the bootstrap, which is not used for the decision."""
    return [compare_metric(m, *values[m.name], resamples=0) for m in METRICS]


def verdict(values: dict[str, NDArray[np.float64]], headline: str) -> Verdict:
    """Return the verdict on an experiment, computed as dbdyno does."""
    return decide({"other": compared(values)}, baseline="base", headline=headline)
