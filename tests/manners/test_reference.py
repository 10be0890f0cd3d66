"""Documentation pages that are generated from the program are current."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_reference_pages_are_current() -> None:
    command = [sys.executable, ROOT / "tools" / "reference", "--check"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
