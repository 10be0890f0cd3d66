"""Connections to Oracle by python-oracledb in thin mode, which needs no client software.

    oracle://user:password@host:1521/service
    oracle://user@host/service?licensed=active_session_history

A missing password is taken from DBDYNO_ORACLE_PASSWORD. Every call has a timeout. Views that need a licence are read
only if `licensed` names them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from dbdyno.base.errors import SnapshotError
from dbdyno.base.json_types import JsonObject
from dbdyno.snapshot.engines.oracle.scripts import LICENSED, script_names

PORT = 1521
CONNECT_S = 10
PASSTHROUGH = ("config_dir", "wallet_location", "ssl_server_dn_match")
_EXAMPLE = "write oracle://user@host:1521/service"
_LOGIN = "check host, service, user and password (DBDYNO_ORACLE_PASSWORD)"
_OLD = "use a server of Oracle 12.1 or newer"


@dataclass(frozen=True)
class Address:
    """Address of an instance.

    Attributes:
        parameters: The driver's parameters, including the password.
        safe: The connection string without the password.
        name: A short name of the target.
        licensed: The licensed scripts that the user named.
    """

    parameters: JsonObject = field(repr=False)
    safe: str
    name: str
    licensed: tuple[str, ...]


def address(dsn: str) -> Address:
    """Parse a connection string.

    Raises:
        SnapshotError: The connection string is not valid.
    """
    try:
        parts = urlsplit(dsn)
        port = parts.port or PORT
    except ValueError as error:
        raise SnapshotError(f"the connection string cannot be read: {error}", next_step=_EXAMPLE) from error
    service = unquote(parts.path.strip("/"))
    if not parts.hostname or not service:
        raise SnapshotError("the connection string has no host or no service", next_step=_EXAMPLE)
    given: JsonObject = {"host": parts.hostname, "port": port, "service_name": service}
    if parts.username:
        given["user"] = unquote(parts.username)
    password = unquote(parts.password or "") or os.environ.get("DBDYNO_ORACLE_PASSWORD")
    if password:
        given["password"] = password
    licensed: list[str] = []
    for name, value in parse_qsl(parts.query):
        if name == "licensed":
            licensed += value.split(",")
        elif name in PASSTHROUGH:
            given[name] = value
        else:
            known = ", ".join(("licensed", *PASSTHROUGH))
            raise SnapshotError(
                f"the connection string has the unknown option {name!r}, expected one of {known}",
                next_step=_EXAMPLE,
            )
    offered = [one.removeprefix(LICENSED) for one in script_names() if one.startswith(LICENSED)]
    for one in licensed:
        if one not in offered:
            raise SnapshotError(
                f"licensed={one!r} is not a view that needs a licence",
                next_step=f"use one of {', '.join(offered)}",
            )
    user = f"{given['user']}@" if "user" in given else ""
    place = f"{parts.hostname}:{port}/{service}"
    return Address(given, f"oracle://{user}{place}", place, tuple(licensed))


def connect(address: Address, timeout_ms: int) -> Any:
    """Return a connection whose calls are cancelled after the timeout.

    Raises:
        SnapshotError: The login failed.
    """
    oracledb = driver()
    try:
        connection = oracledb.connect(**address.parameters, tcp_connect_timeout=CONNECT_S)
        connection.call_timeout = timeout_ms
        connection.module = "dbdyno snap"
    except (oracledb.Error, OSError) as error:
        raise SnapshotError(
            f"cannot log in: {first_line(error)}",
            where=address.safe,
            next_step=_OLD if "DPY-3010" in str(error) else _LOGIN,
        ) from error
    return connection


def driver() -> Any:
    """Return the module python-oracledb.

    Raises:
        SnapshotError: python-oracledb is not installed.
    """
    try:
        import oracledb
    except ImportError as error:
        raise SnapshotError(
            "the driver python-oracledb is not installed", next_step="run `pip install 'dbdyno[oracle]'`"
        ) from error
    return oracledb


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
