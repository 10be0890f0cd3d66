"""One server for all tests of advice: as pgbench makes it first, then with a fault of every kind."""

from __future__ import annotations

from collections.abc import Iterator

import planted_faults as planted
import pytest
from advised import Found

from dbdyno.advise.judge import judge, rules
from dbdyno.bench.postgres.embedded import EmbeddedPostgres


@pytest.fixture(scope="session")
def advised() -> Iterator[EmbeddedPostgres]:
    """The server."""
    with EmbeddedPostgres(settings=planted.SETTINGS) as engine:
        if not planted.has_pgbench():
            pytest.skip("pgbench is not installed; make setup-test")
        planted.run(engine, "create extension pg_stat_statements")
        planted.pgbench(engine, "-i", "-q", "-s", "2")
        planted.pgbench(engine, "-c", "2", "-t", "200")
        yield engine


@pytest.fixture(scope="session")
def clean(advised: EmbeddedPostgres) -> Found:
    """Nothing but pgbench."""
    facts = planted.facts(advised)
    return Found(facts, judge(facts, rules()))


@pytest.fixture(scope="session")
def spoilt(advised: EmbeddedPostgres, clean: Found) -> Found:
    """A fault of every kind."""
    planted.spoil(advised)
    with planted.sessions(advised):
        facts = planted.facts(advised)
    return Found(facts, judge(facts, rules()))
