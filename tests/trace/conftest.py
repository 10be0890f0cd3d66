"""Evidence of made-up traces, opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from trace_evidence import order_entry
from trace_text import trace

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.trace.source import Traces, open_traces


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedPostgres]:
    """A server, for the modules that have none of their own."""
    with EmbeddedPostgres() as running:
        yield running


@pytest.fixture(scope="session")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace that takes long enough to be interrupted while it is read."""
    path = tmp_path_factory.mktemp("big") / "big.trc"
    path.write_text(trace(orders=20_000) * 12)
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """One session that placed forty orders."""
    return order_entry(orders=40).write(tmp_path / "run")


@pytest.fixture
def traces(run: Path) -> Iterator[Traces]:
    """The same, opened."""
    with open_traces([str(run)]) as opened:
        yield opened
