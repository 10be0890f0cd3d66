"""Every module can be imported first; one that needs another import before it fails for whoever starts with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dbdyno

ROOT = Path(dbdyno.__file__).parent
COMMANDS = (
    "dbdyno.advise.engines.postgres.snapshots",
    "dbdyno.snapshot.plans.generic",
    "dbdyno.snapshot.plans.command",
    "dbdyno.judge.snapshots",
)
"""Modules in which commands that read snapshots begin: `advise snap:1..12` once ended with an internal error."""


def imported(*names: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", _EACH, *names], capture_output=True, text=True, check=False)


_EACH = """
import importlib, sys
for name in sys.argv[1:]:
    for known in [one for one in sys.modules if one.startswith("dbdyno") and one != "dbdyno._core"]:
        del sys.modules[known]
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(name, error)
"""


def test_where_commands_begin() -> None:
    done = imported(*COMMANDS)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.soak
def test_every_module() -> None:
    names = [
        ".".join(("dbdyno", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        for path in sorted(ROOT.rglob("*.py"))
        if "__main__" not in path.name
    ]
    assert len(names) > 300
    done = imported(*names)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stdout.splitlines() if "circular" in line or "partially" in line]
    assert not told, "\n".join(told)
