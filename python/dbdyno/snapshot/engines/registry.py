"""Which engine a connection string names, and the module that knows it."""

from __future__ import annotations

import importlib
from typing import Any

from dbdyno.base.errors import SnapshotError
from dbdyno.snapshot.engines.view import Column

MODULES = {
    "postgres": "dbdyno.snapshot.engines.postgres",
    "mariadb": "dbdyno.snapshot.engines.mariadb",
    "oracle": "dbdyno.snapshot.engines.oracle",
}
BLOCKING = ("postgres", "mariadb")
"""Engines whose samples tell who blocks whom."""
SCHEMES = {"mysql": "mariadb", "mariadb": "mariadb", "oracle": "oracle"}


def engine_of(dsn: str) -> str:
    """The engine that a connection string names; without a scheme it is PostgreSQL's."""
    scheme = dsn.partition("://")[0].partition("+")[0].lower() if "://" in dsn else ""
    return SCHEMES.get(scheme, "postgres")


def engine(name: str) -> Any:
    """An engine's module: what it offers is `protocol.Engine`."""
    if name not in MODULES:
        raise SnapshotError(f"this dbdyno knows no engine {name!r}")
    return importlib.import_module(MODULES[name])


def blocked_columns(name: str) -> tuple[Column, ...]:
    """The columns of an engine's pairs of waiter and blocker."""
    if name not in BLOCKING:
        return ()
    found: tuple[Column, ...] = importlib.import_module(f"{MODULES[name]}.sampler").BLOCKED
    return found
