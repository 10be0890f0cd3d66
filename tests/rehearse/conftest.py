"""Fixtures that tests of rehearsals share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rehearsal_help import shop

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.rehearse import allocation, measuring
from dbdyno.rehearse.rehearsed_statement import LEAST_BLOCKS


@pytest.fixture(scope="session")
def engine() -> Iterator[EmbeddedPostgres]:
    """Start one server with the shop for all modules that do not have a server of their own."""
    with shop() as running:
        yield running


@pytest.fixture
def few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rehearsals use short blocks, and only as many per statement as a decision needs.

    This is for tests that do not depend on times. Only a stalled machine then reaches the rehearsal's time limit.
    """
    monkeypatch.setattr(allocation, "BLOCKS_MOST", LEAST_BLOCKS)
    monkeypatch.setattr(measuring, "FIRST_BLOCKS", LEAST_BLOCKS)
    monkeypatch.setattr(measuring, "CONFIRMING", LEAST_BLOCKS)
    monkeypatch.setattr(measuring, "CONFIRMING_MOST", LEAST_BLOCKS)
    monkeypatch.setattr(measuring, "BLOCK_NS_MOST", 5_000_000)
