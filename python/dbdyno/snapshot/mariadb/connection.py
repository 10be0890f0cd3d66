"""Connects to MariaDB: the connection string, the timeouts, errors in the user's words.

    mariadb://user:password@host:port/database?ssl_ca=/path/ca.pem
    mariadb:///?read_default_file=/home/me/.my.cnf

The driver is PyMySQL, the extra `mariadb`: it is pure Python, so that it installs wherever dbdyno
does, without a compiler and a client library; what it costs more is small beside what the server
spends on such reads. A missing password is taken from MYSQL_PWD, as the server's own tools do.

The session reads only, gives up on a statement after the options' timeout and on any lock after a
second (the server's unit), and speaks UTC.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from math import ceil
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from dbdyno.errors import SnapshotError
from dbdyno.snapshot.view import Options

PORT = 3306
CONNECT_S = 10
OPTIONS = ("unix_socket", "read_default_file", "ssl_ca", "ssl_cert", "ssl_key")
"""What may stand behind the `?`; PyMySQL's own names."""


@dataclass(frozen=True)
class Address:
    """Where the server is and as whom to enter. `parameters` are PyMySQL's, the password among
    them; `safe` is the connection string without it, `name` the target's name in the store."""

    parameters: dict[str, Any]
    safe: str
    name: str

    def __repr__(self) -> str:
        return f"Address({self.safe!r})"


def address(dsn: str) -> Address:
    """Takes a connection string apart. Raises `SnapshotError` where it is none."""
    try:
        parts = urlsplit(dsn)
        port = parts.port
    except ValueError as error:
        raise SnapshotError(f"the connection string cannot be read: {error}", next_step=_EXAMPLE) from error
    given: dict[str, Any] = {"host": parts.hostname or "localhost", "port": port or PORT}
    if parts.username:
        given["user"] = unquote(parts.username)
    password = unquote(parts.password) if parts.password else os.environ.get("MYSQL_PWD")
    if password:
        given["password"] = password
    if database := unquote(parts.path.strip("/")):
        given["database"] = database
    for name, value in parse_qsl(parts.query):
        if name not in OPTIONS:
            raise SnapshotError(
                f"the connection string has an option {name!r}, expected {', '.join(OPTIONS)}",
                next_step=_EXAMPLE,
            )
        given[name] = value
    place = given.get("unix_socket") or f"{given['host']}:{given['port']}"
    local = place if place.startswith("/") else None
    user = f"{given['user']}@" if "user" in given else ""
    safe = f"mariadb://{user}{place}/{given.get('database', '')}"
    return Address(given, safe, "local:" + str(given["port"]) if local else place)


def connect(where: Address, options: Options) -> Any:
    """A connection in autocommit with the session's guards set. Raises `SnapshotError`."""
    pymysql = driver()
    try:
        connection = pymysql.connect(
            **where.parameters,
            autocommit=True,
            charset="utf8mb4",
            connect_timeout=CONNECT_S,
            read_timeout=ceil(options.statement_timeout_ms / 1000) + 5,
            write_timeout=CONNECT_S,
            program_name="dbdyno snap",
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
    try:
        import pymysql
    except ImportError as error:
        raise SnapshotError("MariaDB needs the driver PyMySQL", next_step="pip install 'dbdyno[mariadb]'") from error
    return pymysql


def said(error: BaseException) -> str:
    """What the driver's error says, without its number."""
    words = error.args[1] if len(error.args) > 1 else error
    return str(words).strip().splitlines()[0] if str(words).strip() else type(error).__name__


_EXAMPLE = "mariadb://user@host:3306/database"
