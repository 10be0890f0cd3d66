"""The curve of commit time over redo size: a sawtooth is found only if there is one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from dbdyno.base.errors import StatsError
from dbdyno.stats.curve import CurveFit, fit_curve

MIB = 1024.0 * 1024.0
Array = NDArray[np.float64]
Points = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def points(
    curve: Callable[[Array], Array],
    seed: int,
    *,
    n: int = 1500,
    noise: float = 0.25,
    levels: int | None = None,
) -> Points:
    """Return commits in 12 blocks with different levels, noise proportional to the time, and 1 % outliers."""
    rng = np.random.default_rng(seed)
    block = np.sort(rng.integers(0, 12, n))
    x = rng.uniform(1024, 4 * MIB, n)
    if levels:
        x = rng.integers(1, levels + 1, n) * 4 * MIB / levels + rng.integers(0, 600, n)
    time = curve(x) * np.exp(rng.normal(0, noise, n) + rng.normal(0, 0.15, 12)[block])
    time[rng.random(n) < 0.01] *= 10
    return x.astype(np.int64), time.astype(np.int64), block


def constant(x: Array) -> Array:
    return np.full_like(x, 5e5)


def line(x: Array) -> Array:
    return 5e5 + 1e6 * x / MIB


def hinge(x: Array) -> Array:
    return line(np.minimum(x, 1.5 * MIB)) + 2e5 * np.maximum(x - 1.5 * MIB, 0) / MIB


def plateau(x: Array) -> Array:
    return line(np.minimum(x, MIB))


def step(x: Array) -> Array:
    return 5e5 + 3e5 * x / MIB - 5e5 * (x > 2 * MIB)


def saw(x: Array) -> Array:
    return 5e5 + 5e5 * np.mod(x, MIB) / MIB


def leaning_saw(x: Array) -> Array:
    return saw(x) + 1e5 * x / MIB


def chosen(fit: CurveFit) -> str:
    return next(model.name for model in fit.models if model.chosen)


@pytest.mark.parametrize("curve", [saw, leaning_saw])
@pytest.mark.parametrize("levels", [None, 64])
def test_planted_teeth_of_one_mib_are_found(curve: Callable[[Array], Array], levels: int | None) -> None:
    for seed in range(5):
        fit = fit_curve(*points(curve, seed, levels=levels), permutations=199)
        assert fit.found, fit.reasons
        assert fit.period_bytes == pytest.approx(MIB, rel=0.05)
        assert fit.amplitude_ns == pytest.approx(5e5, rel=0.3)
        assert "falls back every" in fit.sentence
        assert chosen(fit).startswith("sawtooth")


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.soak)])
@pytest.mark.parametrize("curve", [constant, line, hinge])
@pytest.mark.soak
def test_other_curves_are_called_a_sawtooth_in_five_of_a_hundred_at_most(
    curve: Callable[[Array], Array], count: int
) -> None:
    false = sum(fit_curve(*points(curve, seed), permutations=99).found for seed in range(count))
    print(f"{false} of {count}")
    assert false <= 0.05 * count


@pytest.mark.parametrize(
    ("curve", "name", "words"),
    [
        (constant, "constant", "does not depend on the redo written"),
        (line, "straight line", "is a straight line"),
        (hinge, "broken line", "per MiB beyond"),
        (plateau, "rise to a plateau", "then stays"),
        (step, "line with a step", "with one step of"),
    ],
)
def test_the_right_curve_without_teeth_is_named(curve: Callable[[Array], Array], name: str, words: str) -> None:
    fit = fit_curve(*points(curve, 3, n=6000, noise=0.15), permutations=99)
    assert not fit.found
    assert (fit.period_bytes, fit.amplitude_ns) == (None, None)
    assert chosen(fit) == name
    assert fit.sentence.startswith("No sawtooth: ")
    assert words in fit.sentence
    assert fit.reasons


def test_teeth_too_small_to_matter_are_not_a_sawtooth() -> None:
    def small(x: Array) -> Array:
        return 1e6 + 3e4 * np.mod(x, MIB) / MIB

    fit = fit_curve(*points(small, 1, n=20_000, noise=0.02), permutations=99)
    assert not fit.found
    assert any("of the commit time" in reason for reason in fit.reasons)


def test_bins_and_line_are_ready_to_draw() -> None:
    fit = fit_curve(*points(line, 1), permutations=99)
    assert len(fit.fit_redo_bytes) == len(fit.fit_elapsed_ns) == 401
    assert sum(b.n for b in fit.bins) <= 1500
    for b in fit.bins:
        assert b.low_ns < b.median_ns < b.high_ns
    assert list(fit.fit_redo_bytes) == sorted(fit.fit_redo_bytes)


def test_the_same_points_and_seed_give_the_same_answer() -> None:
    data = points(saw, 1)
    assert fit_curve(*data, seed=3).p == fit_curve(*data, seed=3).p


def test_points_that_are_not_known_are_left_out() -> None:
    x, time, block = points(line, 1)
    unknown = np.full(100, np.iinfo(np.int64).min)
    more = fit_curve(
        np.concatenate([x, unknown]),
        np.concatenate([time, time[:100]]),
        np.concatenate([block, block[:100]]),
        permutations=99,
    )
    assert more.bins == fit_curve(x, time, block, permutations=99).bins


def test_too_little_is_refused_with_the_next_step() -> None:
    x, time, block = points(line, 1)
    with pytest.raises(StatsError, match="--blocks"):
        fit_curve(x[:50], time[:50], block[:50])
    with pytest.raises(StatsError, match="too few for a curve"):
        fit_curve(x, time, np.zeros_like(block))
    with pytest.raises(StatsError, match="at least 12 levels"):
        fit_curve((x // (1 << 20)) << 20, time, block)
    with pytest.raises(StatsError, match="have different lengths"):
        fit_curve(x, time[:-1], block)
