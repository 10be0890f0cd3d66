"""Write the help that the native program prints, from the commands defined in Python.

python tests/manners/native_help.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PLACE = Path(__file__).parents[2] / "crates" / "dyno-entry" / "src" / "help.txt"


def help_of_python(**environment: str) -> str:
    """Return what `dbdyno-python --help` prints into a pipe."""
    program = Path(sys.executable).parent / "dbdyno-python"
    own = {key: value for key, value in os.environ.items() if key != "COLUMNS"} | environment
    done = subprocess.run([program, "--help"], env=own, capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    PLACE.write_text(help_of_python())
