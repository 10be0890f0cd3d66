"""Connections to MariaDB for snapshots, with timeouts and readable errors.

The bench's code parses the connection string and loads the driver (`bench/mariadb/address.py`). The session is
read-only, cancels a statement after the options' timeout and a wait for a lock after at least a second (the server's
unit), and uses UTC.
"""

from __future__ import annotations

import contextlib
from math import ceil
from typing import Any

from dbdyno.base.errors import SnapshotError
from dbdyno.bench.mariadb import address as own
from dbdyno.bench.mariadb.address import Address, error_text
from dbdyno.bench.mariadb.session import open_session
from dbdyno.snapshot.engines.view import Options


def address(dsn: str) -> Address:
    """Parse a connection string.

    Raises:
        SnapshotError: The connection string is not valid.
    """
    return own.address(dsn, SnapshotError)


def connect(address: Address, options: Options) -> Any:
    """Return a connection in autocommit mode with the session's limits set.

    Raises:
        SnapshotError: The login failed, or the server is not MariaDB.
    """
    pymysql = driver()
    try:
        connection = open_session(
            address.parameters, answer_s=ceil(options.statement_timeout_ms / 1000) + 5, name="dbdyno snap"
        )
    except (pymysql.Error, OSError, ValueError) as error:
        raise SnapshotError(
            f"cannot log in: {error_text(error)}",
            where=address.safe,
            next_step="check address, user and password (MYSQL_PWD, or read_default_file=...)",
        ) from error
    try:
        _guard(connection, address, options)
    except (pymysql.Error, OSError) as error:
        connection.close()
        raise SnapshotError(
            f"the server closed the connection: {error_text(error)}",
            where=address.safe,
            next_step="try again when the server is up",
        ) from error
    return connection


def _guard(connection: Any, address: Address, options: Options) -> None:
    """Set the session's timeouts, make it read-only and set its time zone to UTC.

    Raises:
        SnapshotError: The server is not MariaDB.
    """
    pymysql = driver()
    with connection.cursor() as cursor:
        version = str(connection.get_server_info())
        if "mariadb" not in version.lower():
            connection.close()
            raise SnapshotError(
                f"this is MySQL {version}; expected a MariaDB server",
                where=address.safe,
                next_step="give the address of a MariaDB server",
            )
        with contextlib.suppress(pymysql.Error):  # if allowed: the own session is not accounted
            cursor.execute(
                "update performance_schema.threads set instrumented = 'NO' where processlist_id = connection_id()"
            )
        lock_s = max(1, ceil(options.lock_timeout_ms / 1000))
        cursor.execute(
            "set session max_statement_time = %s, lock_wait_timeout = %s,"
            " innodb_lock_wait_timeout = %s, tx_read_only = 1, time_zone = '+00:00'",
            (options.statement_timeout_ms / 1000, lock_s, lock_s),
        )


def driver() -> Any:
    """Return the module PyMySQL.

    Raises:
        SnapshotError: PyMySQL is not installed.
    """
    return own.driver(SnapshotError)


__all__ = ["Address", "address", "connect", "driver", "error_text"]
