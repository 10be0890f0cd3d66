"""Access to settings that runs left changed on a server, for every engine whose settings runs change.

Usage:

    with open_unrestored(target) as server:
        here, findings = server.find_unrestored(sources())
        server.restore([one for one in findings if one.state == "ours"])
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, cast

from dbdyno.base.errors import TargetError
from dbdyno.bench.kinds import kind_of

if TYPE_CHECKING:
    from dbdyno.bench.postgres.leftovers import Finding, Source

_HOMES = {"postgres": "dbdyno.bench.postgres.restore", "mariadb": "dbdyno.bench.mariadb.restore"}
"""Module of each bench kind whose runs alter server settings; the module defines `open_server(target)`."""


class UnrestoredServer(Protocol):
    """A server on which runs may have left settings changed."""

    def find_unrestored(self, among: Iterable[Source]) -> tuple[list[Source], list[Finding]]:
        """Return the records that belong to this server and each of their settings compared with its current value."""

    def restore_statement(self, finding: Finding) -> str:
        """Return the statement that would restore the setting."""

    def restore(self, findings: Sequence[Finding]) -> None:
        """Restore the settings while holding the lock on the server's settings.

        Raises:
            TargetError: A setting cannot be restored, or another run holds the lock.
        """


def open_unrestored(target: str) -> AbstractContextManager[UnrestoredServer]:
    """Open the server that a target names.

    Raises:
        TargetError: The target names no server with settings to restore, or the server cannot be reached.
    """
    kind = kind_of(target)
    if kind.name not in _HOMES:
        raise TargetError(
            f"{kind.word} has no server settings to restore",
            where=target,
            next_step="name a server of PostgreSQL or MariaDB with --target",
        )
    home = importlib.import_module(_HOMES[kind.name])
    return cast("AbstractContextManager[UnrestoredServer]", home.open_server(target))
