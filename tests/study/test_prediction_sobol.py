"""Sobol indices compared with closed forms."""

from __future__ import annotations

import math

import pytest

from dbdyno.study.prediction.sobol import design, indices


def test_indices_of_a_sum_are_shares_of_its_variance():
    sampled = design(3, 4_000, seed=1)
    found = indices(4_000, [3 * x + 2 * y + z for x, y, z in sampled.places])
    for (first, total), factor in zip(found, (3, 2, 1), strict=True):
        assert first == pytest.approx(factor**2 / 14, abs=0.04)
        assert total == pytest.approx(factor**2 / 14, abs=0.04)


def test_indices_of_the_ishigami_function_are_the_published_ones():
    """Ishigami and Homma 1990, a = 7, b = 0.1: S1 = .3139, S2 = .4424, S3 = 0, T1 = .5576, T3 = .2437."""

    def ishigami(place: list[float]) -> float:
        x, y, z = ((2 * at - 1) * math.pi for at in place)
        return math.sin(x) + 7 * math.sin(y) ** 2 + 0.1 * z**4 * math.sin(x)

    found = indices(8_000, [ishigami(place) for place in design(3, 8_000, seed=2).places])
    assert [first for first, _ in found] == pytest.approx([0.3139, 0.4424, 0.0], abs=0.05)
    assert [total for _, total in found] == pytest.approx([0.5576, 0.4424, 0.2437], abs=0.05)


def test_a_constant_has_no_shares():
    assert indices(20, [5.0] * len(design(2, 20, seed=3).places)) == [(0.0, 0.0), (0.0, 0.0)]


def test_the_same_seed_gives_the_same_places():
    assert design(4, 10, seed=1).places == design(4, 10, seed=1).places != design(4, 10, seed=2).places
    assert len(design(4, 10, seed=1).places) == 10 * (4 + 2)
