"""Registry of the kinds of bench, one row per kind.

To add a kind, add a folder and a row here. `begins` is the prefix of the `--target` value (or the whole value if it has
no colon); a target that matches no row is an engine (`ENGINE`). `home` is the module that defines the kind's `BENCH`
class, imported when a run needs it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbdyno.bench.protocol import Bench


@dataclass(frozen=True)
class Kind:
    """A kind of bench and how targets name it.

    Attributes:
        name: Name in manifests.
        begins: Prefix of a target of this kind, or the whole target if it does not end with a colon.
        home: Module that holds the bench class.
        word: What the bench is, as a phrase for messages.
        usage: How to write a target, for help texts.
        takes_parameters: True if an option that is no factor of the study is a parameter of the machine.
        has_plans: True if a plan file may name this kind.
        in_file: True if the target's name may be the path of a TOML file.
        for_tests: True if the kind is not offered to users.
        urls: Prefixes of connection URLs that also name this kind.
        own_sql: True if a study's SQL for another engine fails on this kind.
    """

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

    def matches(self, target: str) -> bool:
        """Return True if the target is of this kind."""
        if target.startswith(self.urls):
            return True
        return target.startswith(self.begins) if self.begins.endswith(":") else target == self.begins

    def without_prefix(self, target: str) -> str:
        """Return the target without the prefix that names its kind."""
        return target.removeprefix(self.begins)

    def load_bench(self) -> type[Bench]:
        """Import and return the bench class of this kind."""
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
        "cassandra",
        "dbdyno.bench.cassandra.bench",
        "Cassandra",
        "cassandra or cassandra://host/keyspace, by wide-loader",
        has_plans=False,
        urls=("cassandra://",),
    ),
    Kind("mock", "mock:", "dbdyno.bench.mock.bench", "a mock", "mock:", for_tests=True),
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ROWS}
ENGINE = Kind("postgres", "", "dbdyno.bench.postgres.bench", "an engine", "postgres or postgresql://user@host/db")
EMBEDDED = ("postgres", "embedded")
"""Target names that stand for an embedded engine."""
ON_DEVICE = "+device:"
"""Separator between an embedded engine and the modelled device below it in a target."""
POSTGRES_ON_DEVICE, MARIADB_ON_DEVICE = f"postgres{ON_DEVICE}", f"mariadb{ON_DEVICE}"
"""Names of engines on modelled devices, for variants of studies."""


def kind_of(target: str | None) -> Kind:
    """Return the kind of a target; None and targets that match no other kind are engines (`ENGINE`)."""
    engine = embedded_of(target)
    return next((kind for kind in KINDS.values() if engine is not None and kind.matches(engine)), ENGINE)


def embedded_of(target: str | None) -> str | None:
    """Return the engine's name in a target such as `mariadb+device:gp3`; a target without a device is unchanged."""
    engine = (target or "").partition(ON_DEVICE)[0]
    return engine if target is not None and engine in (*EMBEDDED, "mariadb") else target


def target_usages(other: Kind) -> list[str]:
    """Return how to write the targets of all kinds that can have plan files, except for the kind `other`."""
    return [
        kind.usage for kind in (ENGINE, *KINDS.values()) if kind.has_plans and not kind.for_tests and kind is not other
    ]


def kind_named(name: str) -> Kind:
    """Return the kind with the given name in a manifest.

    Raises:
        EvidenceError: No kind has this name.
    """
    from dbdyno.base.errors import EvidenceError

    if name == ENGINE.name:
        return ENGINE
    if name not in KINDS:
        raise EvidenceError(
            f"was made on a bench of kind {name!r}, which this version of dbdyno does not know",
            next_step="use the version of dbdyno that made the run",
        )
    return KINDS[name]
