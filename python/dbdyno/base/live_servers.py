"""Servers that the user named as live in `~/.config/dbdyno/config.toml`; dbdyno reads them but never writes there.

    live = ["db.example", "10.1.2.3:5433", "postgresql://replica.example/app"]

The file is $DBDYNO_CONFIG, or dbdyno/config.toml below $XDG_CONFIG_HOME or ~/.config. An entry without a port means all
servers on that host. Two names refer to the same host if they are equal or share an address.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

from dbdyno.base.dsn import sql_without_secrets
from dbdyno.base.errors import TargetError

LOOPBACK = frozenset({"127.0.0.1", "::1"})
"""Addresses of the local host, for servers that are named by a Unix socket."""


def configuration_file() -> Path:
    """Return the path of the user's configuration, whether it exists or not."""
    own = os.environ.get("DBDYNO_CONFIG")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "dbdyno" / "config.toml"


def refuse_live(host: str, port: int, where: str) -> None:
    """Raise an error if the configuration names this server as live.

    Args:
        host: Name, address, or the folder or path of a Unix socket.
        port: Port of the server.
        where: The server as the error shows it, without secrets.

    Raises:
        TargetError: The server is live, or the configuration cannot be read.
    """
    file = configuration_file()
    places = [_place(entry, file) for entry in _live(file)]
    named = next((place for place in places if _is_same(*place, host, port)), None)
    if named is not None:
        raise TargetError(
            f"is named as live in {file} ({_shown(*named)}): dbdyno only reads from live servers",
            where=where,
            next_step="name a copy that nobody uses; create one with `dbdyno move A B --database`",
        )


def _live(file: Path) -> list[str]:
    """Return the live servers that the configuration lists; empty if there is no such file."""
    try:
        found = tomllib.loads(file.read_text())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise TargetError(f"the configuration cannot be read: {error}", where=str(file), next_step=_STEP) from None
    entries = found.pop("live", [])
    if found or not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        wrong = f"unknown key {min(found)!r}" if found else f"live = {entries!r}"
        raise TargetError(f"expected a list of servers, found {wrong}", where=str(file), next_step=_STEP)
    return entries


_STEP = 'write live = ["db.example", "10.1.2.3:5433"], and nothing else'


def _is_same(named: str, named_port: int | None, host: str, port: int) -> bool:
    return named_port in (None, port) and (named == host.lower() or not _addresses(named).isdisjoint(_addresses(host)))


def _shown(host: str, port: int | None) -> str:
    address = f"[{host}]" if ":" in host and port is not None else host
    return address if port is None else f"{address}:{port}"


def _place(entry: str, file: Path) -> tuple[str, int | None]:
    """Return the host and port of an entry; the port is None if the entry names none."""
    try:
        if _is_address(entry):
            return entry.lower(), None
        parts = urlsplit(entry if "://" in entry else f"//{entry}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or "=" in host or " " in host:
        found = sql_without_secrets(entry)
        raise TargetError(f"live: expected HOST or HOST:PORT, found {found!r}", where=str(file), next_step=_STEP)
    return host, port


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _addresses(host: str) -> frozenset[str]:
    """Return the numeric addresses of a host; none if its name cannot be resolved."""
    if host.startswith(("/", "@")):
        return LOOPBACK
    try:
        found = frozenset(str(info[4][0]) for info in socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP))
    except (OSError, UnicodeError):
        return frozenset()
    return found | LOOPBACK if any(ipaddress.ip_address(one.partition("%")[0]).is_loopback for one in found) else found
