"""One server for all tests of advice: first with pgbench's tables only, then with one fault of each kind."""

from __future__ import annotations

from collections.abc import Iterator

import planted_faults as planted
import pytest
from advised import Found

from dbdyno.advise.judge import judge, rules
from dbdyno.bench.postgres.embedded import EmbeddedPostgres


@pytest.fixture(scope="session")
def advised() -> Iterator[EmbeddedPostgres]:
    """Yield the server, with pgbench's tables and nothing else."""
    with EmbeddedPostgres(settings=planted.SETTINGS) as engine:
        if not planted.has_pgbench():
            pytest.skip("pgbench is not installed; make setup-test")
        planted.run(engine, "create extension pg_stat_statements")
        planted.pgbench(engine, "-i", "-q", "-s", "2")
        planted.pgbench(engine, "-c", "2", "-t", "200")
        yield engine


@pytest.fixture(scope="session")
def clean(advised: EmbeddedPostgres) -> Found:
    """Return the advice for the server before any fault is planted."""
    facts = planted.facts(advised)
    return Found(facts, judge(facts, rules()))


@pytest.fixture(scope="session")
def spoilt(advised: EmbeddedPostgres, clean: Found) -> Found:
    """Return the advice for the server after one fault of each kind was planted."""
    planted.spoil(advised)
    with planted.sessions(advised):
        facts = planted.facts(advised)
    return Found(facts, judge(facts, rules()))
