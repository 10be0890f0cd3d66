"""The cells to reach: names on the command line, group files, and a port and a user for each.

    exa1cel01,exa1cel02          names, separated by commas
    @cell_group                  a file with one name per line, as dcli reads it; # begins a comment
    celladmin@exa1cel03:2222     with its own user and port
    exa1cel[01-14]               a range of names, with their leading zeros
    [::1]:2222                   an IPv6 address with a port

What a name does not specify comes from the options, then from the user's SSH configuration.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dbdyno.base.errors import CellsError
from dbdyno.base.files import read_user_file

_HOST = re.compile(
    r"(?:(?P<user>[A-Za-z_][\w.-]*)@)?(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9][\w.-]*))"
    r"(?::(?P<port>\d{1,5}))?"
)
_ROW = re.compile(r"(.*)\[(\d+)-(\d+)\](.*)")
_MOST = 10_000


@dataclass(frozen=True)
class Host:
    """Cell to reach.

    `name` is the title of its column and is not compared; `port` and `user` are None if the user's SSH configuration
    decides.
    """

    name: str = field(compare=False)
    address: str
    port: int | None = None
    user: str | None = None


def hosts_of(texts: Sequence[str], *, user: str | None = None) -> list[Host]:
    """Return the cells that the texts name, each once, in order, with names that distinguish their columns.

    Args:
        texts: Names, ranges and group files, separated by commas.
        user: The user for names without one.

    Raises:
        CellsError: A word is not a host (the error names file and line), or there are no cells.
    """
    found: dict[tuple[str, int | None, str | None], Host] = {}
    for text in texts:
        for word in text.split(","):
            for named in _hosts_of_word(word.strip(), "--hosts"):
                host = named if named.user else replace(named, user=user)
                found.setdefault((host.address, host.port, host.user), host)
    if not found:
        raise CellsError(
            "no cell is given",
            next_step="name the cells with --hosts exa1cel01,exa1cel02, or with --group FILE with one name per line",
        )
    return _told_apart(list(found.values()))


def check_host(address: object, port: object, user: object) -> Host:
    """Return the host for an address that comes from a file, under the same rules as --hosts.

    Raises:
        CellsError: The address, port or user is not valid.
    """
    port_fits = port is None or (isinstance(port, int) and not isinstance(port, bool) and 0 < port < 65536)
    word = f"[{address}]" if isinstance(address, str) and ":" in address else str(address)
    match = _HOST.fullmatch(f"{user}@{word}" if user is not None else word)
    if not isinstance(address, str) or not port_fits or match is None or match["port"]:
        raise CellsError(
            f"{address!r}, port {port!r}, user {user!r} is not a valid host",
            next_step="correct the host; no cell was contacted",
        )
    return Host(address, address, port if isinstance(port, int) else None, match["user"])


def _hosts_of_word(word: str, where: str) -> list[Host]:
    if not word:
        return []
    if word.startswith("@"):
        return _group(Path(word[1:]))
    return [_host(name, where) for name in _row(word, where)]


def lines_of(path: Path, problem: str, next_step: str) -> list[str]:
    """Return the lines of a file that the user wrote.

    Raises:
        CellsError: The file cannot be read, or is not text.
    """
    try:
        return read_user_file(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise CellsError(f"{problem}: {reason}", where=str(path), next_step=next_step) from error


def _group(path: Path) -> list[Host]:
    found = []
    lines = lines_of(path, "the group file cannot be read", "give a file with one host name per line")
    for number, line in enumerate(lines, 1):
        for name in line.partition("#")[0].split():
            found += _hosts_of_word(name, f"{path}:{number}")
    return found


def _row(word: str, where: str) -> list[str]:
    match = _ROW.fullmatch(word)
    if match is None or ":" in match[0].partition("]")[0].partition("[")[2]:
        return [word]
    low, high = int(match[2]), int(match[3])
    if not low <= high < low + _MOST:
        raise CellsError(
            f"{word!r} is not a range of names", where=where, next_step="write a range such as name[01-14]"
        )
    return [f"{match[1]}{at:0{len(match[2])}}{match[4]}" for at in range(low, high + 1)]


def _host(word: str, where: str) -> Host:
    match = _HOST.fullmatch(word)
    port = int(match["port"]) if match and match["port"] else None
    if match is None or (port is not None and not 0 < port < 65536):
        raise CellsError(f"{word!r} is not a valid host", where=where, next_step="write [USER@]HOST[:PORT] or @FILE")
    address = match["six"] or match["host"]
    return Host(address, address, port, match["user"])


def _told_apart(hosts: list[Host]) -> list[Host]:
    """Name hosts so that they differ: by address, else with the port, else also with the user."""
    names = [host.address for host in hosts]
    ports = [f"{host.address}:{host.port}" if host.port else host.address for host in hosts]
    users = [f"{host.user or ''}@{port}" for host, port in zip(hosts, ports, strict=True)]
    for choice in (names, ports, users):
        if len(set(choice)) == len(hosts):
            return [replace(host, name=name) for host, name in zip(hosts, choice, strict=True)]
    return hosts
