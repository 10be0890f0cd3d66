"""One server for all tests of advice: as pgbench makes it first, then with a fault of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import planted_faults as planted
import pytest

from dbdyno.advise.facts import Facts
from dbdyno.advise.judge import judge, rules
from dbdyno.bench.postgres.embedded import EmbeddedPostgres


class Found(NamedTuple):
    """What the server said and what the rules made of it."""

    facts: Facts
    model: dict[str, Any]

    def of(self, rule: str) -> list[dict[str, Any]]:
        """The findings of a rule."""
        return [one for one in self.model["findings"] if one["rule"] == rule]

    def only(self, rule: str) -> dict[str, Any]:
        """The finding of a rule that has one."""
        found = self.of(rule)
        assert len(found) == 1, [one["sentence"] for one in found]
        return found[0]

    def figure(self, rule: str, what: str, subject: str = "") -> Any:
        """A figure of a rule's evidence."""
        one = next(one for one in self.of(rule) if not subject or one["subject"] == subject)
        return next(each["value"] for each in one["evidence"] if each["what"] == what)


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
