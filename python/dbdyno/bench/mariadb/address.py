"""Where a MariaDB server is and as whom to enter: the connection string, and the driver.

    mariadb://user:password@host:port/database?ssl_ca=/path/ca.pem
    mariadb:///?read_default_file=/home/me/.my.cnf

The driver is PyMySQL, the extra `mariadb`: it is pure Python, so that it installs wherever dbdyno does, without a
compiler and a client library. A missing password is taken from MYSQL_PWD, as the server's own tools do.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from dbdyno.errors import Error, TargetError

PORT = 3306
CONNECT_S = 10
OPTIONS = ("unix_socket", "read_default_file", "ssl_ca", "ssl_cert", "ssl_key", "server_public_key")
"""What may stand behind the `?`; PyMySQL's own names; `server_public_key` is a file here."""

_EXAMPLE = "mariadb://user@host:3306/database"


@dataclass(frozen=True)
class Address:
    """Where the server is and as whom to enter. `parameters` are PyMySQL's, the password among them; `safe` is the
    connection string without it, `name` a short name of the target."""

    parameters: dict[str, Any]
    safe: str
    name: str

    def __repr__(self) -> str:
        return f"Address({self.safe!r})"


def address(dsn: str, failure: type[Error] = TargetError) -> Address:
    """Takes a connection string apart. Raises `failure` where it is none."""
    try:
        parts = urlsplit(dsn)
        port = parts.port
        if parts.fragment or "@" in parts.path + parts.query:
            raise ValueError("an at sign behind the host")
    except ValueError as error:
        # What could not be read is not quoted: it may be a part of the password.
        message = "the connection string cannot be read: its port is no number, or a sign of the password is not quoted"
        raise failure(message, next_step=f"{_EXAMPLE}; the password in MYSQL_PWD") from error
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
            raise failure(
                f"the connection string has an option {name!r}, expected {', '.join(OPTIONS)}",
                next_step=_EXAMPLE,
            )
        given[name] = value
    return of_parameters(given)


def of_parameters(given: dict[str, Any]) -> Address:
    """The address of these parameters of PyMySQL."""
    place = given.get("unix_socket") or f"{given['host']}:{given['port']}"
    local = place if place.startswith("/") else None
    user = f"{given['user']}@" if "user" in given else ""
    safe = f"mariadb://{user}{place}/{given.get('database', '')}"
    return Address(given, safe, "local:" + str(given["port"]) if local else place)


def driver(failure: type[Error] = TargetError) -> Any:
    """PyMySQL. Raises `failure` where it is not installed."""
    try:
        import pymysql
    except ImportError as error:
        raise failure("MariaDB needs the driver PyMySQL", next_step="pip install 'dbdyno[mariadb]'") from error
    return pymysql


def said(error: BaseException) -> str:
    """What the driver's error says, without its number."""
    words = error.args[1] if len(error.args) > 1 else error
    return str(words).strip().splitlines()[0] if str(words).strip() else type(error).__name__
