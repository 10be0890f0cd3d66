"""One-way analysis of variance against NIST's StRD: the eleven sets that scipy's wheel carries.

The simulated sets have 1, 7 and 13 constant leading digits. A double holds about 16, so the data of the last three sets
determine only about four digits of F, and the tests require no more.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from nist_help import digits

from dbdyno.stats.description import describe
from dbdyno.stats.group_tests import one_way_anova

FOLDER = Path(scipy.stats.__file__).parent / "tests" / "data" / "nist_anova"
#: File: least digits of F and of R squared.
LEAST = {
    "AtmWtAg": (10.0, 10.0),
    "SiRstv": (12.5, 12.5),
    "SmLs01": (13.5, 13.5),
    "SmLs02": (13.0, 13.0),
    "SmLs03": (12.5, 12.5),
    "SmLs04": (10.0, 10.0),
    "SmLs05": (10.0, 10.0),
    "SmLs06": (10.0, 10.0),
    "SmLs07": (4.0, 4.0),
    "SmLs08": (4.0, 4.0),
    "SmLs09": (4.0, 4.0),
}


@pytest.mark.parametrize("name", LEAST)
def test_an_anova_set(name: str) -> None:
    path = FOLDER / f"{name}.dat"
    if not path.is_file():
        pytest.skip(f"scipy was installed without {path.name}")
    text = path.read_text()
    f = float(re.search(r"Between \w+\s+\d+\s+\S+\s+\S+\s+(\S+)", text)[1])  # type: ignore[index]
    r2 = float(re.search(r"R-Squared\s+(\S+)", text)[1])  # type: ignore[index]
    rows = np.array([line.split() for line in text.splitlines()[60:] if line.strip()], dtype=float)
    found = one_way_anova(describe(rows[:, 1], rows[:, 0].astype(int)).groups)
    assert digits(found.statistic, f) >= LEAST[name][0]
    assert digits(found.effect_value, r2) >= LEAST[name][1]
