"""Linear regression compared with NIST's StRD: all eleven linear sets, with the required digits for each file.

Digits are the log relative error of the worst coefficient and of the worst standard error. The data are read as
doubles, which do not determine more of the certified digits than the tests require. Results of other methods on the
same files, worst coefficient: QR in doubles 7.9 on Filip and 5.8 on Wampler5, pseudo-inverse and normal equations 0 on
Filip.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from nist_help import digits, nist

from dbdyno.stats.regression import LinearFit, lm

#: File: least digits of the coefficients, of their standard errors, of the residual deviation.
LEAST = {
    "Norris": (13.0, 13.0, 13.0),
    "Pontius": (13.0, 13.0, 13.0),
    "NoInt1": (14.0, 14.0, 13.0),
    "NoInt2": (14.0, 14.0, 13.0),
    "Filip": (13.0, 13.0, 13.0),
    "Longley": (13.5, 13.5, 13.0),
    "Wampler1": (14.0, 14.0, 14.0),
    "Wampler2": (13.0, 14.0, 14.0),
    "Wampler3": (14.0, 14.0, 13.0),
    "Wampler4": (14.0, 14.0, 13.0),
    "Wampler5": (14.0, 14.0, 13.0),
}
NUMBER = r"(-?[\d.]+(?:E[+-]\d+)?)"


def fitted(text: str) -> tuple[LinearFit, list[tuple[float, float]]]:
    """Return the fit of a file, and its certified pairs (estimate, standard error)."""
    certified = [(float(a), float(b)) for a, b in re.findall(rf"^\s+B\d+\s+{NUMBER}\s+{NUMBER}", text, re.M)]
    rows = np.array([line.split() for line in text.splitlines()[60:] if line.strip()], dtype=float)
    y, xs = rows[:, 0], rows[:, 1:].T
    intercept = "B0 " in text
    degree = len(certified) - intercept if len(xs) == 1 else 1
    return lm(y, *xs, intercept=intercept, degree=degree), certified


@pytest.mark.parametrize("name", LEAST)
def test_a_linear_set(name: str) -> None:
    text = nist(name)
    fit, certified = fitted(text)
    assert len(fit.coefficients) == len(certified)
    coefficients, errors, spread = LEAST[name]
    for found, (estimate, error) in zip(fit.coefficients, certified, strict=True):
        assert digits(found.estimate, estimate) >= coefficients, found
        assert digits(found.error, error) >= errors, found
    certified_spread = re.search(rf"Residual\s+Standard Deviation\s+{NUMBER}", text)
    assert certified_spread is not None
    assert digits(fit.residual_error, float(certified_spread[1])) >= spread
    certified_r2 = re.search(rf"R-Squared\s+{NUMBER}", text)
    assert certified_r2 is not None
    assert digits(fit.r2, float(certified_r2[1])) >= 13.0


@pytest.mark.parametrize("name", ["Norris", "Pontius", "Filip", "Longley", "Wampler4"])
def test_f_of_a_linear_set(name: str) -> None:
    text = nist(name)
    fit, _ = fitted(text)
    certified = re.search(rf"Regression\s+\d+\s+{NUMBER}\s+{NUMBER}\s+{NUMBER}", text)
    assert certified is not None
    assert digits(fit.f, float(certified[3])) >= 12.5


def test_powers_that_the_user_formed_keep_what_doubles_carry() -> None:
    """Filip with x^2 to x^10 as columns of doubles: each power is rounded, which alone costs half
    of the digits."""
    text = nist("Filip")
    fit, certified = fitted(text)
    rows = np.array([line.split() for line in text.splitlines()[60:] if line.strip()], dtype=float)
    by_hand = lm(rows[:, 0], *(rows[:, 1] ** power for power in range(1, 11)))
    for found, (estimate, _) in zip(by_hand.coefficients, certified, strict=True):
        assert digits(found.estimate, estimate) >= 6.5
    assert digits(fit.coefficients[0].estimate, by_hand.coefficients[0].estimate) >= 6.5
