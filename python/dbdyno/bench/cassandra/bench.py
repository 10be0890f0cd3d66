"""Methods of loading a wide table into Cassandra, run as flows of a persistent process (`dbdyno.wide.load_methods`)."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import ClassVar

from dbdyno.base.processes import python_command
from dbdyno.bench.flows.bench import FlowBench
from dbdyno.bench.flows.engines import Engine
from dbdyno.bench.protocol import RunLayout

EMBEDDED = "cassandra"
"""Target name that stands for a Cassandra node that dbdyno starts itself."""


def _missing() -> str | None:
    found = importlib.util.find_spec("cassandra")
    return None if found else "Cassandra's driver is not installed (make setup-wide, or pip install 'dbdyno[wide]')"


class CassandraBench(FlowBench):
    """Bench on one keyspace, in which all methods load the same table."""

    workload = "load"
    parts: ClassVar[tuple[str, ...]] = ("loading",)
    floor_runs = 1  # each may start two JVMs
    floors_by_arm = True
    engines: ClassVar[Mapping[str, Engine]] = {
        "cassandra": Engine(
            "cassandra",
            "Cassandra",
            "way",
            "",
            "a wide table",
            _missing,
            lambda _: python_command("dbdyno.wide.load_methods"),
            at="DBDYNO_CASSANDRA",
        )
    }

    def server_of(self, engine: Engine) -> dict[str, str]:
        """Return the keyspace to load: the target's keyspace, or the keyspace of a node started here."""
        if self.plan.dsn != EMBEDDED:
            return super().server_of(engine)
        from dbdyno.bench.cassandra.embedded import EmbeddedCassandra

        return {engine.at: self.held.enter_context(EmbeddedCassandra(guardian=self.around.guardian)).dsn()}

    def prepare(self, seed: int | None = None) -> RunLayout:
        """Check what the run needs, before anything is created.

        Raises:
            TargetError: The driver is not installed, or the jars for an embedded Cassandra are missing.
            PlanError: The number of lines is too small or too large.
        """
        if self.plan.dsn == EMBEDDED:
            from dbdyno.bench.cassandra.embedded import check_installed

            check_installed()
        return super().prepare(seed)


BENCH = CassandraBench
