"""A lock, visible to the whole server, that lets only one run at a time alter a server's settings.

Two runs that alter one setting would each take the other's value for the previous value, and the server would keep it.
Therefore a user lock (GET_LOCK) is taken before the first SET GLOBAL, by a session of the guardian: it is held exactly
as long as there is a process that will restore the settings.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from dbdyno.base.errors import TargetError

LOCK = "dbdyno settings"
ENGINE = "engine"
"""Key in a claim's parameters that names the engine; PostgreSQL's claims do not have it."""

_HOLDER = """
select concat('session ', id, ' of ', user, '@', host, ' for ', time, ' s') from information_schema.processlist
where id = is_used_lock(%s)
"""


class MariaClaim:
    """The lock on one server's settings and the session that holds it."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._parameters = {name: value for name, value in parameters.items() if name != ENGINE}
        self._session: Any = None

    def acquire(self, run: str = "") -> Any:
        """Take the lock, or confirm that it is still held, and return its session; `run` is not used.

        Raises:
            TargetError: Another run holds the lock.
            pymysql.Error: The server does not answer.
        """
        from dbdyno.bench.mariadb.session import open_session, row, rows

        if self._session is not None and not self._still_held():
            self.close()
        if self._session is None:
            session = open_session(self._parameters, name="dbdyno guardian")
            try:
                # The session may be silent for as long as the run lasts.
                rows(session, "set session wait_timeout = 31536000")
                if row(session, "select get_lock(%s, 0)", [LOCK])[0] != 1:
                    raise _claim_error(rows(session, _HOLDER, [LOCK]), session.host)
            except BaseException:
                session.close()
                raise
            self._session = session
        return self._session

    def close(self) -> None:
        """Release the lock by closing its session."""
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(Exception):
                session.close()

    def _still_held(self) -> bool:
        from dbdyno.bench.mariadb.session import row

        with contextlib.suppress(Exception):
            return bool(row(self._session, "select is_used_lock(%s) = connection_id()", [LOCK])[0])
        return False


def _claim_error(holders: list[tuple[Any, ...]], host: str) -> TargetError:
    who = holders[0][0] if holders else "it ended just now"
    return TargetError(
        f"another dbdyno run alters settings of this server ({who})",
        where=host,
        next_step="wait until that run has ended, or stop it with Ctrl-C (it restores what it changed), then run again",
    )
