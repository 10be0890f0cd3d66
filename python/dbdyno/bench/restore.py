"""What runs left changed on a server, whatever engine it is: a face per kind that keeps such settings.

with open_owed(target) as server:
    here, findings = server.look(sources())
    server.put_back([one for one in findings if one.state == "ours"])
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
"""The module of each kind of which runs alter the server's settings; it has `opened(target)`."""


class OwedServer(Protocol):
    """A server to which settings may be owed."""

    def look(self, among: Iterable[Source]) -> tuple[list[Source], list[Finding]]:
        """The records that are of this server, and each of their settings as the server has it now."""

    def statement(self, one: Finding) -> str:
        """What would be sent to put a setting back."""

    def put_back(self, left: Sequence[Finding]) -> None:
        """Puts settings back under the lock of the server's settings; raises `TargetError`."""


def open_owed(target: str) -> AbstractContextManager[OwedServer]:
    """The server of a target. Raises `TargetError`."""
    kind = kind_of(target)
    if kind.name not in _HOMES:
        raise TargetError(f"{kind.word} has no server's settings to put back", where=target)
    home = importlib.import_module(_HOMES[kind.name])
    return cast("AbstractContextManager[OwedServer]", home.opened(target))
