"""Statistics compared with NIST's Statistical Reference Datasets (StRD, univariate and Norris).

The data files are public domain work of the United States government; they are read from the
folder named by DBDYNO_DATA, else from shared/data beside the repository, and the tests that
need them are skipped where there is none. Sets that follow a formula are written out here, with
their certified values.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from nist_help import digits, nist
from numpy.typing import NDArray

from dbdyno.stats import autocorrelation, moments
from dbdyno.stats.shapes import SHAPES, Search

Array = NDArray[np.float64]


def alternating(first: float, low: float, high: float) -> Array:
    """Return a set from NumAcc2 to NumAcc4: one value, then 1,000 that alternate between two."""
    return np.array([first] + [low, high] * 500)


@pytest.mark.parametrize(
    ("values", "mean", "sd", "r1", "least"),
    [
        (np.array([10_000_001.0, 10_000_003.0, 10_000_002.0]), 10_000_002.0, 1.0, -0.5, 14.9),
        (alternating(1.2, 1.1, 1.3), 1.2, 0.1, -0.999, 14.0),
        (alternating(1_000_000.2, 1_000_000.1, 1_000_000.3), 1_000_000.2, 0.1, -0.999, 9.0),
        (alternating(10_000_000.2, 10_000_000.1, 10_000_000.3), 10_000_000.2, 0.1, -0.999, 8.0),
    ],
    ids=["NumAcc1", "NumAcc2", "NumAcc3", "NumAcc4"],
)
def test_sets_written_out(values: Array, mean: float, sd: float, r1: float, least: float) -> None:
    """All certified values of these sets are exact. NumAcc3 and NumAcc4 cannot be held in binary to
    more than about 9 and 8 digits of their spread."""
    found = moments(values)
    assert digits(found.mean, mean) >= 14.9
    assert digits(found.sd, sd) >= least
    assert digits(autocorrelation(values), r1) >= least


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("PiDigits", 14.0),
        ("Lottery", 14.0),
        ("Lew", 14.0),
        ("Mavro", 12.0),
        ("Michelso", 13.0),
        ("NumAcc1", 14.9),
        ("NumAcc2", 14.0),
        ("NumAcc3", 9.0),
        ("NumAcc4", 8.0),
    ],
)
def test_files_of_the_univariate_sets(name: str, least: float) -> None:
    text = nist(name)
    certified = [
        float(re.search(rf"{label}.*?:\s*(-?[\d.]+)", text)[1])  # type: ignore[index]
        for label in (r"Sample Mean", r"Sample Standard Deviation", r"Sample Autocorrelation")
    ]
    values = np.array(text.split("---\n")[-1].split(), dtype=np.float64)
    count = re.search(r"Number of Observations:\s*(\d+)", text)
    assert count is not None
    assert values.size == int(count[1])
    found = moments(values)
    assert digits(found.mean, certified[0]) >= 14.0
    assert digits(found.sd, certified[1]) >= least
    # Printed to 15 digits at most; the sum of products loses a few where it nearly cancels.
    assert digits(autocorrelation(values), certified[2]) >= least - 2.0


def test_a_straight_line_is_that_of_norris() -> None:
    """Certified: intercept -0.262323073774029, slope 1.00211681802045."""
    text = nist("Norris")
    rows = np.array(re.split(r"Data:\s+y\s+x", text)[-1].split(), dtype=np.float64).reshape(-1, 2)
    line = next(shape for shape in SHAPES if shape.name == "straight line")
    search = Search(line, rows[:, 1], np.ones(len(rows)), np.zeros((0, 2)))
    found = search.fit(rows[:, 0])
    assert digits(found.intercept, -0.262323073774029) >= 11.0
    assert digits(found.slope, 1.00211681802045) >= 13.0
