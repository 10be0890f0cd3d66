"""A range of redo sizes too narrow for a sawtooth still gives a curve; few blocks still allow cross-validation."""

from __future__ import annotations

import numpy as np

from dbdyno.stats.curve import TOO_NARROW, fit_curve


def test_a_narrow_range_gives_a_curve_and_says_that_no_teeth_were_looked_for():
    dice = np.random.default_rng(1)
    redo = dice.integers(8192, 65536, 2000)
    elapsed = 1e5 + redo * 20 + dice.lognormal(0, 0.2, 2000) * 1e4
    fit = fit_curve(redo, elapsed, np.arange(2000) % 4)
    assert not fit.found
    assert fit.reasons == (TOO_NARROW,)
    assert "straight line" in fit.sentence


def test_four_blocks_are_enough_for_five_folds():
    dice = np.random.default_rng(2)
    redo = dice.integers(4096, 4 << 20, 1000)
    assert not fit_curve(redo, 1e6 + dice.lognormal(0, 0.2, 1000), np.arange(1000) % 4).found
