"""Moments in a description compared with NIST's StRD: all univariate files, with the required digits for each file."""

from __future__ import annotations

import re

import numpy as np
import pytest
from nist_help import digits, nist

from dbdyno.stats.description import describe

#: File: least digits of the standard deviation. NumAcc3 and NumAcc4 as doubles carry 9 and 8; here
#: the subtraction of the smallest value is exact and loses none of those.
LEAST = {
    "PiDigits": 14.0,
    "Lottery": 14.0,
    "Lew": 14.0,
    "Mavro": 12.0,
    "Michelso": 13.0,
    "NumAcc1": 15.0,
    "NumAcc2": 14.0,
    "NumAcc3": 9.0,
    "NumAcc4": 8.0,
}


@pytest.mark.parametrize("name", LEAST)
def test_a_univariate_set(name: str) -> None:
    text = nist(name)
    mean, sd = (
        float(re.search(rf"{label}.*?:\s*(-?[\d.]+)", text)[1])  # type: ignore[index]
        for label in ("Sample Mean", "Sample Standard Deviation")
    )
    found = describe(np.array(text.split("---\n")[-1].split(), dtype=float)).groups[0]
    assert digits(found.mean, mean) >= 14.0
    assert digits(found.sd, sd) >= LEAST[name]
