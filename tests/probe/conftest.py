"""A folder on a disk, and the commands as a user runs them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import command_line
from dbdyno.bench.host.machine import file_system

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder on a disk; skip the test if temporary files are in memory."""
    found = file_system(tmp_path)
    if found is None or found.in_memory:
        pytest.skip("temporary files lie in memory here")
    yield tmp_path


@pytest.fixture
def dbdyno(tmp_path: Path) -> Command:
    """Return a function that runs `dbdyno ...` in the test's folder."""

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        return command_line.dbdyno(*words, cwd=tmp_path)

    return run
