"""The kinds of bench: one row each. A new kind is a folder, and a row here.

`begins` is what `--target` begins with, or is; the last row takes every other name. `home` is the module that holds
the kind's `BENCH`, imported when a run needs it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbdyno.bench.protocol import Bench


@dataclass(frozen=True)
class Kind:
    """A kind of bench: its name in manifests, how a target names it (`urls`: beginnings of connection strings that do,
    too), where its code is, and what it is, in a word for messages. `takes_parameters`: an option that is no factor of
    the study is a parameter of the machine. `own_sql`: SQL of a study that is written for another engine fails there.
    `has_plans`: a plan file may name it; `in_file`: as a file, too.
    `for_tests`: not offered to users."""

    name: str
    begins: str
    home: str
    word: str
    usage: str
    takes_parameters: bool = False
    has_plans: bool = True
    in_file: bool = False
    for_tests: bool = False
    urls: tuple[str, ...] = ()
    own_sql: bool = False

    def names(self, target: str) -> bool:
        """Whether a target is of this kind."""
        if target.startswith(self.urls):
            return True
        return target.startswith(self.begins) if self.begins.endswith(":") else target == self.begins

    def rest(self, target: str) -> str:
        """The target without what tells its kind."""
        return target.removeprefix(self.begins)

    def bench(self) -> type[Bench]:
        """The kind's own class."""
        found: type[Bench] = importlib.import_module(self.home).BENCH
        return found


_ROWS = (
    Kind("model", "model:", "dbdyno.bench.model.bench", "a model", "model:NAME or model:FILE.toml", True, in_file=True),
    Kind("cells", "cells:", "dbdyno.bench.cells.bench", "storage cells", "cells:HOST1,HOST2", has_plans=False),
    Kind("host", "host", "dbdyno.bench.host.bench", "this host", "host", has_plans=False),
    Kind("programs", "programs:", "dbdyno.bench.programs.bench", "commands", "host, with a command in the plan"),
    Kind(
        "mariadb",
        "mariadb",
        "dbdyno.bench.mariadb.bench",
        "MariaDB",
        "mariadb or mariadb://user@host/db",
        urls=("mariadb://", "mysql://"),
        own_sql=True,
    ),
    Kind(
        "flows", "flows:", "dbdyno.bench.flows.bench", "engines of data flows", "flows:, by flow-order", has_plans=False
    ),
    Kind(
        "cassandra",
        "cassandra:",
        "dbdyno.bench.cassandra.bench",
        "Cassandra",
        "cassandra://host/keyspace, by wide-loader",
        has_plans=False,
    ),
    Kind("mock", "mock:", "dbdyno.bench.mock.bench", "a mock", "mock:", for_tests=True),
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ROWS}
ENGINE = Kind("postgres", "", "dbdyno.bench.postgres.bench", "an engine", "postgres or postgresql://user@host/db")
EMBEDDED = ("postgres", "embedded")
"""Names of the embedded engine."""


def kind_of(target: str | None) -> Kind:
    """The kind of a target; an engine where it is of no other, or none is named."""
    return next((kind for kind in KINDS.values() if target is not None and kind.names(target)), ENGINE)


def usages(other: Kind) -> list[str]:
    """How the targets are named that plans run on, but for one kind."""
    return [
        kind.usage for kind in (ENGINE, *KINDS.values()) if kind.has_plans and not kind.for_tests and kind is not other
    ]


def kind_named(name: str) -> Kind:
    """The kind that a manifest names."""
    from dbdyno.base.errors import EvidenceError

    if name == ENGINE.name:
        return ENGINE
    if name not in KINDS:
        raise EvidenceError(f"was made on a bench of kind {name!r}, which this dbdyno does not know")
    return KINDS[name]
