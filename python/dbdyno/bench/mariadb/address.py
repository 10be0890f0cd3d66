"""Connection strings of MariaDB servers, and the driver.

    mariadb://user:password@host:port/database?ssl_ca=/path/ca.pem
    mariadb:///?read_default_file=/home/me/.my.cnf

The driver is PyMySQL, the extra `mariadb`: it is pure Python, so it installs wherever dbdyno does, without a compiler
or a client library. A missing password is read from MYSQL_PWD, as by the server's own tools.
"""

from __future__ import annotations

import configparser
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from dbdyno.base.errors import Error, TargetError
from dbdyno.base.files import read_user_file
from dbdyno.base.json_types import JsonObject

PORT = 3306
CONNECT_S = 10
OPTIONS = (
    *("unix_socket", "read_default_file", "ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_identity"),
    "server_public_key",
)
"""Options allowed after the `?`, with PyMySQL's names for them; here `server_public_key` is the path of a file."""
IN_FILE = {"ssl-ca": "ssl_ca", "ssl-cert": "ssl_cert", "ssl-key": "ssl_key"}
"""Options of an option file that protect a connection, each with its name in a connection string."""
VERIFY = "ssl-verify-server-cert"
NOT_IN_FILE = ("ssl", "ssl-capath", "ssl-cipher", "ssl-crl", "ssl-crlpath", "ssl-fp", "ssl-fplist", "tls-version")
"""Options of an option file that neither the driver nor the load generator supports."""
OFF = ("0", "off", "false", "no")

_EXAMPLE = "write mariadb://user@host:3306/database"


class Parameters(TypedDict, total=False):
    """PyMySQL's connection parameters, including the password."""

    host: str
    port: int
    user: str
    password: str
    database: str
    unix_socket: str
    read_default_file: str
    ssl_ca: str
    ssl_cert: str
    ssl_key: str
    ssl_verify_identity: bool


@dataclass(frozen=True)
class Address:
    """Address of a server and the login to use.

    Attributes:
        parameters: PyMySQL's parameters, including the password.
        safe: The connection string without the password.
        name: A short name of the target.
    """

    parameters: Parameters
    safe: str
    name: str

    def __repr__(self) -> str:
        return f"Address({self.safe!r})"


def address(dsn: str, failure: type[Error] = TargetError) -> Address:
    """Parse a connection string.

    Raises:
        Error: An error of type `failure`: the string is invalid, or its options cannot be honoured.
    """
    try:
        parts = urlsplit(dsn)
        port = parts.port
        if parts.fragment or "@" in parts.path + parts.query:
            raise ValueError("there is an at sign after the host")
    except ValueError as error:
        # The unreadable part is not quoted: it may be a part of the password.
        message = (
            "the connection string cannot be read: its port is not a number, or the password has an unescaped character"
        )
        raise failure(message, next_step=f"{_EXAMPLE}, and put the password in MYSQL_PWD") from error
    given: JsonObject = {"host": parts.hostname or "localhost", "port": port or PORT}
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
                f"the connection string has the unknown option {name!r}, expected {', '.join(OPTIONS)}",
                next_step=_EXAMPLE,
            )
        given[name] = value
    if path := given.get("read_default_file"):
        given = {**_protection_of(Path(path).expanduser(), failure), **given}
    if verify := given.pop("ssl_verify_identity", None):
        given |= {"ssl_verify_identity": True} if str(verify).lower() not in OFF else {}
    if given.get("ssl_verify_identity") and not given.get("ssl_ca"):
        raise failure(
            "ssl_ca is missing: there is nothing to check the server's certificate against",
            next_step="add ssl_ca=FILE to the connection string",
        )
    return address_of_parameters(cast("Parameters", given))


def _protection_of(path: Path, failure: type[Error]) -> dict[str, object]:
    """Return an option file's settings that protect a connection, so that all of dbdyno's connections use them.

    Raises:
        Error: An error of type `failure`: a connection would ignore an option, or other users can write to the file.
    """
    driver(failure)
    from pymysql.optionfile import Parser

    file = Parser()
    try:
        if path.stat().st_mode & 0o002:
            raise failure(
                "is not used, because every user can write to it",
                where=str(path),
                next_step="run `chmod o-w` on the file",
            )
        file.read_string(read_user_file(path), str(path))
        found = dict(file.items("client")) if file.has_section("client") else {}
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        words = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        raise failure(
            f"the option file cannot be read: {words}",
            where=str(path),
            next_step="correct the file, or name another one",
        ) from error
    told = {name: (value or "").strip("\"'") for name, value in found.items()}
    for name in NOT_IN_FILE:
        if name in told and told[name].lower() not in OFF and not (name == "ssl" and "ssl-ca" in told):
            raise failure(
                f"the option {name} is not supported by dbdyno's connections",
                where=str(path),
                next_step="use ssl-ca and ssl-verify-server-cert to protect the connections, or name another file",
            )
    given: dict[str, object] = {here: told[name] for name, here in IN_FILE.items() if told.get(name)}
    return given | ({"ssl_verify_identity": told[VERIFY] or "1"} if VERIFY in told else {})


def address_of_parameters(parameters: Parameters) -> Address:
    """Return the address for these PyMySQL parameters."""
    place = parameters.get("unix_socket") or f"{parameters['host']}:{parameters['port']}"
    local = place if place.startswith("/") else None
    user = f"{parameters['user']}@" if "user" in parameters else ""
    safe = f"mariadb://{user}{place}/{parameters.get('database', '')}"
    return Address(parameters, safe, "local:" + str(parameters["port"]) if local else place)


def driver(failure: type[Error] = TargetError) -> Any:
    """Return the module PyMySQL.

    Raises:
        Error: An error of type `failure`: PyMySQL is not installed.
    """
    try:
        import pymysql
    except ImportError as error:
        raise failure("the driver PyMySQL is not installed", next_step="run `pip install 'dbdyno[mariadb]'`") from error
    return pymysql


def error_text(error: BaseException) -> str:
    """Return the message of a driver's error, first line only, without its number."""
    words = error.args[1] if len(error.args) > 1 and isinstance(error.args[1], str) else error
    return str(words).strip().splitlines()[0] if str(words).strip() else type(error).__name__
