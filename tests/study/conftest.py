"""Fixtures that several test files of studies share."""

from __future__ import annotations

import pytest


@pytest.fixture
def one_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a what-if simulate one drawn machine for the band of a point, for tests that do not look at bands."""
    monkeypatch.setattr("dbdyno.study.prediction.whatif.DRAWS", 1)
