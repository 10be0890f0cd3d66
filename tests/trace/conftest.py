"""Opened evidence of synthetic traces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from trace_evidence import order_entry
from trace_text import trace

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.trace.source import Traces, open_traces
from memory_folder import roomy_memory


@pytest.fixture(scope="session")
def engine() -> Iterator[EmbeddedPostgres]:
    """A server, for the modules that have none of their own; each test makes its databases."""
    with EmbeddedPostgres(roomy_memory()) as running:
        yield running


@pytest.fixture(scope="session")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a trace that takes long enough to read that the reading can be interrupted."""
    path = tmp_path_factory.mktemp("big") / "big.trc"
    path.write_text(trace(orders=20_000) * 12)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write a trace of twenty orders."""
    path = tmp_path / "made.trc"
    path.write_text(trace())
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Write a run of one session that placed forty orders."""
    return order_entry(orders=40).write(tmp_path / "run")


@pytest.fixture
def traces(run: Path) -> Iterator[Traces]:
    """Open that run."""
    with open_traces([str(run)]) as opened:
        yield opened
