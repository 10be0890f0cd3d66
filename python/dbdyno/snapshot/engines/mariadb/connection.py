"""Connects to MariaDB for a snapshot: the timeouts, errors in the user's words.

The connection string and the driver are those of the bench (`bench/mariadb/address.py`).

The session reads only, gives up on a statement after the options' timeout and on any lock after a
second (the server's unit), and speaks UTC.
"""

from __future__ import annotations

import contextlib
from math import ceil
from typing import Any

from dbdyno.base.errors import SnapshotError
from dbdyno.bench.mariadb import address as own
from dbdyno.bench.mariadb.address import Address, said
from dbdyno.bench.mariadb.session import open_session
from dbdyno.snapshot.engines.view import Options


def address(dsn: str) -> Address:
    """Takes a connection string apart. Raises `SnapshotError` where it is none."""
    return own.address(dsn, SnapshotError)


def connect(where: Address, options: Options) -> Any:
    """A connection in autocommit with the session's guards set. Raises `SnapshotError`."""
    pymysql = driver()
    try:
        connection = open_session(
            where.parameters, answer_s=ceil(options.statement_timeout_ms / 1000) + 5, name="dbdyno snap"
        )
    except (pymysql.Error, OSError, ValueError) as error:
        raise SnapshotError(
            f"cannot log in: {said(error)}",
            where=where.safe,
            next_step="check address, user and password (MYSQL_PWD, or read_default_file=...)",
        ) from error
    try:
        _guard(connection, where, options)
    except (pymysql.Error, OSError) as error:
        connection.close()
        raise SnapshotError(
            f"the server broke off: {said(error)}", where=where.safe, next_step="try again when it is up"
        ) from error
    return connection


def _guard(connection: Any, where: Address, options: Options) -> None:
    """Sets the session's limits; raises `SnapshotError` for a server that is not MariaDB."""
    pymysql = driver()
    with connection.cursor() as cursor:
        version = str(connection.get_server_info())
        if "mariadb" not in version.lower():
            connection.close()
            raise SnapshotError(
                f"this is MySQL {version}; only MariaDB is known",
                where=where.safe,
                next_step="give a MariaDB server",
            )
        with contextlib.suppress(pymysql.Error):  # where we may: our own session is not accounted
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
    """PyMySQL. Raises `SnapshotError` where it is not installed."""
    return own.driver(SnapshotError)


__all__ = ["Address", "address", "connect", "driver", "said"]
