"""Connections to MariaDB that never wait forever, and statements that can be cancelled by a stop request."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dbdyno.bench.mariadb.address import CONNECT_S, driver
from dbdyno.bench.mariadb.safe_connection import NO_KEY, safe_connection_class

ANSWER_S = 30.0
"""Maximum seconds of silence for a statement that should be answered immediately."""
STEP_S = 0.1
CANCEL_S = 5.0


class StopRequested(Exception):  # noqa: N818
    """Error for a statement that was cancelled because the user or the system asked to stop."""


def open_session(parameters: Mapping[str, Any], *, answer_s: float | None = ANSWER_S, name: str = "dbdyno") -> Any:
    """Open a connection in autocommit mode.

    Args:
        parameters: PyMySQL's parameters; `server_public_key` is a path.
        answer_s: Seconds of silence that are allowed; None for statements that may take hours.
        name: Session name shown by the server.

    Raises:
        pymysql.Error: The server refuses the connection or does not answer.
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    if given.get("ssl_ca"):
        given["ssl_verify_cert"] = True  # the driver would accept any certificate
    if path := given.get("unix_socket"):
        _knock(path)
    if isinstance(given.get("password"), str):
        given["password"] = given["password"].encode()  # the driver would encode it as Latin-1
    named = given.get("server_public_key")
    given["server_public_key"] = Path(named).read_bytes() if named else NO_KEY
    return safe_connection_class()(
        **given,
        autocommit=True,
        charset="utf8mb4",
        connect_timeout=CONNECT_S,
        read_timeout=answer_s,
        write_timeout=CONNECT_S,
        program_name=name,
    )


def _knock(path: str) -> None:
    """Raise an error if nothing listens at this Unix socket; the driver itself would then leak its socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_S)
        try:
            probe.connect(path)
        except OSError as error:
            raise driver().OperationalError(2002, f"cannot connect to {path}: {error}") from error


def rows(connection: Any, sql: str, values: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
    """Run a statement and return all its rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


def row(connection: Any, sql: str, values: Sequence[Any] | None = None) -> tuple[Any, ...]:
    """Run a statement that always returns one row, and return that row.

    Raises:
        pymysql.OperationalError: The server returns no row.
    """
    found = rows(connection, sql, values)
    if not found or not found[0]:
        raise driver().OperationalError(2027, f"the server did not answer: {sql}")
    return found[0]


def run_stoppable(parameters: Mapping[str, Any], sql: str, stop: Callable[[], bool] | None) -> None:
    """Run a statement on a separate connection, however long it takes, unless `stop` returns True meanwhile.

    Raises:
        StopRequested: `stop` returned True; the statement was cancelled.
        pymysql.Error: The statement failed.
    """
    connection = open_session(parameters, answer_s=None)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            rows(connection, sql)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work, name="statement", daemon=True)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(STEP_S)
            if stop is not None and stop() and thread.is_alive():
                _end(parameters, connection)
                thread.join(CANCEL_S)
                raise StopRequested
    finally:
        with contextlib.suppress(Exception):
            connection.close()
    if failures:
        raise failures[0]


def _end(parameters: Mapping[str, Any], connection: Any) -> None:
    with contextlib.suppress(Exception), contextlib.closing(open_session(parameters, answer_s=CANCEL_S)) as other:
        rows(other, "kill %s", [connection.thread_id()])
