"""Removal of secrets from connection strings, SQL text and plans; text that cannot be parsed is dropped.

libpq itself defines which connection options are secret (it marks them with `*` for display), and connection strings
are parsed by libpq's own parser, so passwords may contain commas, quotes, blanks and at signs. Running time is linear
in the length of the text.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

HIDDEN = "***"
UNREADABLE = "(a connection string that could not be read was left out)"
PRIVATE_OPTIONS = ("passfile", "sslkey")
"""libpq options that are not secret themselves but name the files that hold secrets."""
MARIADB_URLS = ("mariadb://", "mysql://")
MARIADB_PRIVATE = ("read_default_file", "ssl_key")
"""Options of a MariaDB URL that are not secret themselves but name the files that hold secrets."""
MARIADB_OPTIONS = (*MARIADB_PRIVATE, "unix_socket", "ssl_ca", "ssl_cert", "ssl_verify_identity", "server_public_key")
"""All options accepted in a MariaDB URL; a URL with any other option counts as unreadable."""
_SECRET_WORD = re.compile(r"(?i)\b(?:(?:ssl)?(?:password|passwd|pwd|passfile|sslkey)|(identified\s{1,9}by))\b")
_SECRET_NAME = re.compile(r"(?i)(?:password|passwd|pwd|passfile|sslkey)\Z")
_ADDRESS = re.compile(r"://[^\s]{0,4096}")
_TOML_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'[^'\n]*+'|#[^\n]*+",
    re.DOTALL,
)
_QUOTED = r"(?:''[^']*+''|[eE]?'(?:[^'\\]|\\.|'')*+'?|\"[^\"]*+\"?|\$\w*+\$.*)"
_SQL_VALUE = re.compile(rf"\s*+(?:{_QUOTED}|[=:]\s*+(?:{_QUOTED}|\S++))", re.DOTALL)
_SQL_WORD = re.compile(rf"\s*+(?:{_QUOTED}|[^\s;]++)", re.DOTALL)


def without_secrets(dsn: str | None) -> str | None:
    """Return the connection string without passwords and private files, as libpq parses it.

    Names of other targets (`model:...`, `cells:...`) are returned unchanged. A string that cannot be parsed, or in
    which an unquoted `@` in the password was mistaken for a part of the host, port or database, becomes `UNREADABLE`.

    >>> without_secrets("postgresql://scott:tiger@db/orders")
    'user=scott dbname=orders host=db'
    >>> without_secrets("host=db password='a, b' user=scott")
    'user=scott host=db'
    >>> without_secrets("model:exadata-x2")
    'model:exadata-x2'
    """
    if dsn is None or ("://" not in dsn and "=" not in dsn):
        return dsn
    if "://" not in dsn and dsn.split(":", 1)[0] in ("model", "cells"):
        return dsn
    if dsn.startswith(MARIADB_URLS):
        return _url_without_secrets(dsn)
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    try:
        found = conninfo_to_dict(dsn)
        # An unquoted special character ended the password; its rest was parsed as the host, the port or the database.
        misread = any("@" in str(found.get(name, "")) for name in ("host", "port"))
        is_port = set(str(found.get("port", ""))) <= set("0123456789,")
        if misread or not is_port or ("://" in dsn and "@" in str(found.get("dbname", ""))):
            return UNREADABLE
        return make_conninfo("", **{name: value for name, value in found.items() if name not in _secret_options()})
    except (psycopg.Error, UnicodeError, ValueError):
        return UNREADABLE


def _url_without_secrets(dsn: str) -> str:
    """Return a MariaDB URL without its password and private files, or `UNREADABLE`.

    An unquoted special character in the password makes the URL parser assign the rest of the password to port,
    database, options or fragment. Such a URL is not shown at all.
    """
    try:
        parts = urlsplit(dsn)
        port, options = parts.port, parse_qsl(parts.query, strict_parsing=bool(parts.query))
    except ValueError:
        return UNREADABLE
    if parts.fragment or "@" in parts.path + parts.query or any(name not in MARIADB_OPTIONS for name, _ in options):
        return UNREADABLE
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    user = f"{parts.username}@" if parts.username else ""
    place = f"{host}:{port}" if port is not None else host
    query = urlencode([(name, value) for name, value in options if name not in MARIADB_PRIVATE], safe="/")
    return f"{parts.scheme}://{user}{place}{parts.path}" + (f"?{query}" if query else "")


def sql_without_secrets(text: str) -> str:
    """Return SQL or other text with passwords and logins hidden.

    Hidden are the value after the word `password` (or a similar word) and the login before the @ of an address.

    >>> sql_without_secrets("alter user scott password 'ti''ger'")
    "alter user scott password '***'"
    >>> sql_without_secrets("see postgresql://scott:p@ss@db/orders")
    'see postgresql://***@db/orders'
    """
    text = _ADDRESS.sub(_address_without_login, text)
    pieces, at = [], 0
    for word in _SECRET_WORD.finditer(text):
        if word.start() < at:
            continue
        value = _SQL_WORD.match(text, word.end()) if word[1] else _SQL_VALUE.match(text, word.end())
        if value is not None:
            pieces += [text[at : word.end()], " '", HIDDEN, "'"]
            at = value.end()
    return "".join([*pieces, text[at:]])


def text_without_secrets(text: str) -> str:
    """Return the TOML text of a plan without secrets, or "" if it cannot be parsed or would still contain a secret.

    >>> text_without_secrets('dsn = "postgresql://scott:tiger@db/orders"  # ours')
    'dsn = "user=scott dbname=orders host=db"  # ours'
    """
    try:
        tomllib.loads(text)
        hidden = _TOML_STRING.sub(_token_without_secrets, text)
        left = tomllib.loads(hidden)
    except (ValueError, RecursionError):
        return ""
    bare = all(_any_without_secrets(one) == one for one in _strings(left)) and named_without_secrets(left) == left
    return hidden if bare else ""


def named_without_secrets(value: Any, name: str = "") -> Any:
    """Return a JSON value with the secrets in all of its strings hidden.

    A string is hidden completely if its key ends in `password` or a similar word (`names_a_secret`).

    >>> named_without_secrets({"app_password": "tiger", "who": "scott"})
    {'app_password': '***', 'who': 'scott'}
    """
    if isinstance(value, str):
        return HIDDEN if value and names_a_secret(name) else sql_without_secrets(value)
    if isinstance(value, dict):
        return {key: named_without_secrets(entry, str(key)) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [named_without_secrets(entry, name) for entry in value]
    return value


def names_a_secret(name: str) -> bool:
    """Return True if a value of this name is a secret: the name ends in `password` or a similar word."""
    return _SECRET_NAME.search(name) is not None


def map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with `change` applied to every string in it, but not to the keys of objects."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: map_strings(entry, change) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [map_strings(entry, change) for entry in value]
    return value


def _secret_options() -> set[str]:
    from psycopg import pq

    marked = {one.keyword.decode() for one in pq.Conninfo.get_defaults() if one.dispchar == b"*"}
    return marked | {"password", "sslpassword", *PRIVATE_OPTIONS}


def _any_without_secrets(value: str) -> str:
    """Return a string of a plan without secrets, treated as a connection string if it parses as one, else as SQL."""
    if _is_connection(value):
        return without_secrets(value) or ""
    return sql_without_secrets(value)


def _is_connection(value: str) -> bool:
    if value.startswith(("postgresql://", "postgres://", *MARIADB_URLS)):
        return True
    if "=" not in value or "://" in value:
        return False
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        return bool(conninfo_to_dict(value))
    except (psycopg.Error, UnicodeError, ValueError):
        return False


def _token_without_secrets(match: re.Match[str]) -> str:
    token = match.group()
    if token.startswith("#"):
        return token if sql_without_secrets(token) == token else "# (left out)"
    value = str(tomllib.loads(f"x = {token}")["x"])
    hidden = _any_without_secrets(value)
    return token if hidden == value else json.dumps(hidden, ensure_ascii=False).replace("\x7f", "\\u007f")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for entry in value.values():
            yield from _strings(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _strings(entry)


def _address_without_login(match: re.Match[str]) -> str:
    before, at, after = match.group()[3:].rpartition("@")
    return f"://{HIDDEN}@{after}" if at and ":" in before else match.group()
