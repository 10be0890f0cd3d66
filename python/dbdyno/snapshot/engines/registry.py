"""The engine that a connection string names, and the module for it."""

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
"""Engines whose samples show who blocks whom."""
SCHEMES = {"mysql": "mariadb", "mariadb": "mariadb", "oracle": "oracle"}


def engine_of(dsn: str) -> str:
    """Return the engine that a connection string names; without a known scheme it is PostgreSQL."""
    scheme = dsn.partition("://")[0].partition("+")[0].lower() if "://" in dsn else ""
    return SCHEMES.get(scheme, "postgres")


def engine(name: str) -> Any:
    """Return an engine's module, which implements `protocol.Engine`.

    Raises:
        SnapshotError: The engine is not known.
    """
    if name not in MODULES:
        raise SnapshotError(
            f"this version of dbdyno does not know the engine {name!r}",
            next_step="use the version of dbdyno that took the snapshot",
        )
    return importlib.import_module(MODULES[name])


def blocked_columns(name: str) -> tuple[Column, ...]:
    """Return the columns of an engine's pairs of waiter and blocker; empty if it has none."""
    if name not in BLOCKING:
        return ()
    found: tuple[Column, ...] = importlib.import_module(f"{MODULES[name]}.sampler").BLOCKED
    return found
