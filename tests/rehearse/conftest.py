"""What rehearsals of these tests have in common."""

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
    """A rehearsal ends when each statement has the fewest blocks that a decision needs, and short ones.

    For claims that do not depend on how long anything takes. The time of the rehearsal is then a limit that only a
    stalled machine reaches.
    """
    monkeypatch.setattr(allocation, "BLOCKS_MOST", LEAST_BLOCKS)
    monkeypatch.setattr(measuring, "FIRST_BLOCKS", LEAST_BLOCKS)
    monkeypatch.setattr(measuring, "CONFIRMING", LEAST_BLOCKS)
    monkeypatch.setattr(measuring, "CONFIRMING_MOST", LEAST_BLOCKS)
    monkeypatch.setattr(measuring, "BLOCK_NS_MOST", 5_000_000)
