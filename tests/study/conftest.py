"""Fixtures that several test files of studies share."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_made import machine_of

from dbdyno.study.prediction.fit import Machine


@pytest.fixture(scope="module")
def machine(runs: Path) -> Machine:
    """Return the machine calibrated from the arm with one session of the module's run."""
    return machine_of(runs, "one")


@pytest.fixture(scope="module")
def file(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the machine's TOML file."""
    path = tmp_path_factory.mktemp("machine") / "mine.toml"
    path.write_text(machine.toml())
    return path


@pytest.fixture
def one_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a what-if simulate one drawn machine for the band of a point, for tests that do not look at bands."""
    monkeypatch.setattr("dbdyno.study.prediction.whatif.DRAWS", 1)
