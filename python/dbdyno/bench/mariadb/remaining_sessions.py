"""Sessions of a load from many hosts at a MariaDB server, and how they are ended.

MariaDB's keepalives are settings of the whole server, so a session cannot request different ones.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import Error
from dbdyno.bench.engine.remaining_sessions import end_after_grace
from dbdyno.bench.mariadb.address import driver
from dbdyno.bench.mariadb.session import row, rows

if TYPE_CHECKING:
    from dbdyno.bench.mariadb.server import MariaDB

_IDENTIFY = """
select /* dbdyno */ id, host from information_schema.processlist
where id in %s and user = substring_index(user(), '@', 1)
"""


class MariaDBSessions:
    """Sessions of an arm at a MariaDB server."""

    def __init__(self, target: MariaDB) -> None:
        self.target = target

    def with_keepalives(self, connection: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the connection unchanged: it needs no keepalive options."""
        return connection

    def identify(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return client address and port of each of these connections that still exists; empty behind a proxy.

        Raises:
            TargetError: The server does not answer.
        """
        if not numbers:
            return {}
        with contextlib.closing(self.target.connect()) as connection:
            if row(connection, "select connection_id()")[0] != connection.thread_id():
                return {}
            return dict(rows(connection, _IDENTIFY, [list(numbers)]))

    def end(self, known: Mapping[int, str]) -> None:
        """End those of these connections that do not end by themselves, if the server answers."""
        failures = (Error, driver().Error, OSError)
        with contextlib.suppress(*failures), contextlib.closing(self.target.connect()) as connection:

            def remaining() -> list[int]:
                return [number for number, host in rows(connection, _IDENTIFY, [list(known)]) if known[number] == host]

            def end(number: int) -> None:
                with contextlib.suppress(driver().Error):  # it has just ended
                    rows(connection, "kill %s", [number])

            end_after_grace(remaining, end)
