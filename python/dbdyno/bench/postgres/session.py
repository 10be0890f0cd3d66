"""Connections that never wait forever: a network that goes silent leads to an error, not to a hang.

    what                                    how long
    connecting, login included              `connect_timeout` (10 s unless the target says otherwise)
    a statement with a time limit           the limit and `GRACE_S`
    a statement that answers immediately    `ANSWER_S`
    a statement that may take hours         as long as the server still knows the session
    any of them                             after `PROBE_S` the server is probed on a second connection; if that
                                            is silent as well, the wait ends

The limits apply to silence: each byte that arrives restarts them. TCP's own mechanisms (keepalives, `tcp_user_timeout`)
are set as well, but they detect only a peer that no longer acknowledges; only these limits detect a proxy or a firewall
that drops what it has acknowledged.

A session can also be stopped: if `stop` returns True while the session waits, the statement is cancelled and
`StopRequested` raised. An interruption (Ctrl-C) closes the connection without waiting.
"""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from psycopg.waiting import Ready, Wait

ANSWER_S = 30.0
GRACE_S = 8.0
PROBE_S = 15.0
PROBED_S = 5.0
"""Seconds that the second connection may take to answer."""
CANCEL_S = 2.0
STEP_MS = 100

DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
"""libpq parameters of all connections that dbdyno opens, unless the target sets them itself."""


class NoAnswer(psycopg.OperationalError):
    """Error for a server, or the network to it, that was silent for too long; the connection is closed."""

    unreachable = False
    """True if a second connection got no answer either: then no request to this server will be answered."""


class StopRequested(psycopg.OperationalError):
    """Error for a statement that was cancelled because the user or the system asked to stop."""


class Session(psycopg.Connection[Any]):
    """Connection with client-side time limits; create it with `open_session`."""

    answer_s: float = ANSWER_S
    stop: Callable[[], bool] | None = None
    known: Mapping[str, Any] | None = None
    """Parameters for probing the server on a second connection; None means that silence ends the wait."""
    _asked_of: float = 0.0
    outlives: bool = False
    """True if a statement may take longer than `answer_s` as long as the server knows the session."""

    def wait(self, gen: Any, interval: float = 0.0, timeout: float | None = None) -> Any:
        """Drive a psycopg generator to its end, waiting for the socket within the time limits, and return its result.

        The connection is closed when one of these errors is raised, because its state is unknown.

        Raises:
            NoAnswer: The server was silent for too long.
            StopRequested: `stop` asked to end; the statement was cancelled.
        """
        try:
            return self._drive(gen, timeout)
        except (NoAnswer, StopRequested, KeyboardInterrupt) as error:
            if not isinstance(error, NoAnswer):
                with contextlib.suppress(Exception):
                    self.cancel_safe(timeout=CANCEL_S)
            self.pgconn.finish()
            raise

    def _drive(self, gen: Any, timeout: float | None) -> Any:
        fileno, poll = self.pgconn.socket, select.poll()
        begun = heard = time.monotonic()
        try:
            state = next(gen)
            poll.register(fileno, _EVENTS[state])
            while True:
                found = poll.poll(STEP_MS if timeout is None else min(STEP_MS, int(timeout * 1000)))
                heard = time.monotonic() if found else self._patience(heard)
                state = gen.send(_ready(found[0][1]) if found else Ready.NONE)
                poll.modify(fileno, _EVENTS[state])
                if timeout is not None and time.monotonic() - begun >= timeout:
                    raise psycopg.errors._WaitTimeout("wait timeout expired")
        except StopIteration as end:
            return end.value

    def _patience(self, heard: float) -> float:
        """Return the time from which the silence of the server is counted; raise an error if waiting must end."""
        if self.stop is not None and self.stop():
            raise StopRequested("cancelled: the run was asked to end")
        silent_s = time.monotonic() - heard
        if self.known is not None and silent_s >= PROBE_S and self._asked_of != heard:
            self._asked_of = heard
            answer = _knows(self.known, self.info.backend_pid)
            if answer is None:
                raise self._silent(heard, unreachable=True)
            if answer and self.outlives:
                return time.monotonic()
        if silent_s < self.answer_s:
            return heard
        raise self._silent(heard)

    def _silent(self, heard: float, *, unreachable: bool = False) -> NoAnswer:
        words = "the server or the network to it is silent"
        error = NoAnswer(f"no answer for {time.monotonic() - heard:.0f} s: {words}")
        error.unreachable = unreachable
        return error


def open_session(
    parameters: Mapping[str, Any],
    *,
    answer_s: float | None = ANSWER_S,
    stop: Callable[[], bool] | None = None,
) -> Session:
    """Open a connection in autocommit mode that prepares no statements unless asked to.

    Behind a pooler the name of a prepared statement could refer to another client's statement.

    Args:
        parameters: libpq parameters, and those of psycopg's `connect`.
        answer_s: Seconds of silence that are allowed; None for statements that may take hours.
        stop: Called while waiting; the statement is cancelled when it returns True.

    Raises:
        psycopg.Error: The server refuses the connection or does not answer.
    """
    given = {k: v for k, v in parameters.items() if v is not None}
    known = {"autocommit": True, "prepare_threshold": None, **DEFAULTS, **given}
    session = Session.connect(**known)
    set_time_limits(session, known, answer_s, stop)
    return session


def set_time_limits(
    session: Session, known: Mapping[str, Any], answer_s: float | None, stop: Callable[[], bool] | None = None
) -> None:
    """Set how long a connection waits from now on; see `open_session`."""
    session.stop = stop
    session.answer_s = PROBE_S if answer_s is None else answer_s
    session.outlives = answer_s is None
    session.known = known if session.answer_s >= PROBE_S else None


def _knows(parameters: Mapping[str, Any], pid: int) -> bool | None:
    """Return True if the server still has a session with this process ID, or None if the server does not answer."""
    try:
        limits = {**parameters, "connect_timeout": f"{PROBED_S:.0f}"}
        with contextlib.closing(open_session(limits, answer_s=PROBED_S)) as other:
            row = other.execute("select /* dbdyno */ 1 from pg_stat_activity where pid = %s", [pid]).fetchone()
            return row is not None
    except psycopg.Error as error:
        return None if server_gone(error) else False


_EVENTS = {
    Wait.R: select.POLLIN,
    Wait.W: select.POLLOUT,
    Wait.RW: select.POLLIN | select.POLLOUT,
}


def _ready(event: int) -> int:
    """Return what libpq may do now; a closed socket counts as readable, because reading shows why it was closed."""
    if event & select.POLLNVAL:
        raise psycopg.OperationalError("the connection was closed")
    ready = 0
    if event & (select.POLLIN | select.POLLERR | select.POLLHUP):
        ready |= Ready.R
    if event & select.POLLOUT:
        ready |= Ready.W
    return ready


def server_gone(error: BaseException) -> bool:
    """Return True if an error of the driver means that the server or the connection to it is gone."""
    return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))


__all__ = ["NoAnswer", "Session", "StopRequested", "open_session", "server_gone", "set_time_limits"]
