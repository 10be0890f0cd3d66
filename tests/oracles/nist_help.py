"""Data files of NIST, and the number of correct digits."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest


def nist(name: str) -> str:
    """Return the text of a data file of NIST's StRD; skip the test with the reason if the file is missing."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    folder = Path(os.environ.get("DBDYNO_DATA", beside)) / "nist"
    path = folder / f"{name}.dat"
    if not path.is_file():
        pytest.skip(f"no {path.name} in {folder} (set DBDYNO_DATA)")
    return path.read_text()


def digits(found: float, certified: float) -> float:
    """Return the number of correct digits: the log relative error (absolute if the certified value is 0)."""
    apart = abs(found - certified) / (abs(certified) or 1.0)
    return 15.0 if apart == 0 else min(15.0, -float(np.log10(apart)))
