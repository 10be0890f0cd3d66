"""Importing `dbdyno.stats` is cheap: its names are imported when they are first used."""

from __future__ import annotations

import subprocess
import sys

import dbdyno.stats


def test_all_names_are_there() -> None:
    assert all(hasattr(dbdyno.stats, name) for name in dbdyno.stats.__all__)
    assert callable(dbdyno.stats.decide), "the function, not the module of the same name"


def test_a_report_of_snapshots_imports_numpy_only_if_it_computes_with_it() -> None:
    program = "import sys, dbdyno.stats, dbdyno.judge.interval_report; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
