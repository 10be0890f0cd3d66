"""Ways of loading a wide table into a Cassandra, run as flows of a persistent process (`dbdyno.wide.load_methods`)."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import ClassVar

from dbdyno.base.processes import python_command
from dbdyno.bench.flows.bench import FlowBench
from dbdyno.bench.flows.engines import Engine


def _missing() -> str | None:
    found = importlib.util.find_spec("cassandra")
    return None if found else "Cassandra's driver is not installed (make setup-wide, or pip install 'dbdyno[wide]')"


class CassandraBench(FlowBench):
    """Bench on one keyspace, in which the ways share a table."""

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


BENCH = CassandraBench
