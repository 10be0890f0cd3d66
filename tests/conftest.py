"""What every test has: a folder of its own for what runs owe to servers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest_plugins = ["drawings"]

# Processes that tests start keep what they compile: else each of them compiles the whole package, half a second of CPU.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(autouse=True)
def owed_apart(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of a test is noted among the records of whoever runs the tests."""
    place = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("DBDYNO_STATE", str(place))
    return place / "owed"
