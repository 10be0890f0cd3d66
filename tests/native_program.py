"""The native program `dbdyno`, beside Python's answers to the same words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from command_line import dbdyno

PROGRAM = Path(sys.executable).parent / "dbdyno"
LEFT = "dbdyno-python is not beside this program"

Answer = tuple[int, str, str]
"""Exit code, stdout and stderr of a command."""


def native(program: Path, *words: object, cwd: Path | None = None, **environment: str) -> Answer:
    """Return what the native program answers."""
    own = {key: value for key, value in os.environ.items() if key != "COLUMNS"} | environment
    told = subprocess.run(
        [program, *words], cwd=cwd, env=own, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return told.returncode, told.stdout.decode(), told.stderr.decode()


def python(*words: object, cwd: Path | None = None, **environment: str) -> Answer:
    """Return what Python answers."""
    done = dbdyno(*words, cwd=cwd, **{"COLUMNS": "", **environment})
    return done.returncode, done.stdout, done.stderr
