"""Connection strings without their secrets; no database library needed."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

_SECRET = re.compile(r"(?i)\b(password|sslpassword|passfile|sslkey)\s*=\s*('(?:\\.|[^'])*'|\S+)")
_URL_SECRET = re.compile(r"(?i)([?&](?:password|sslpassword)=)[^&\s\"']*")


def without_secrets(dsn: str | None) -> str | None:
    """The DSN with every password replaced by `***`.

    >>> without_secrets("postgresql://scott:tiger@db/orders")
    'postgresql://scott:***@db/orders'
    >>> without_secrets("host=db password='a b' user=scott")
    'host=db password=*** user=scott'
    """
    if dsn is None:
        return None
    if "://" not in dsn:
        return _SECRET.sub(lambda match: f"{match[1]}=***", dsn)
    parts = urlsplit(dsn)
    user, at, host = parts.netloc.rpartition("@")
    if ":" in user:
        user = user.split(":", 1)[0] + ":***"
    query = _URL_SECRET.sub(r"\1***", "?" + parts.query)[1:]
    return urlunsplit((parts.scheme, user + at + host, parts.path, query, parts.fragment))


_TEXT_SECRET = re.compile(r"(?i)\b(password|sslpassword|passfile|sslkey)\s*=\s*('(?:\\.|[^'])*'|[^\s\"',}]+)")
_IN_TEXT = re.compile(r"(\b[a-zA-Z][\w+.-]*://[^/\s\"':@]*):[^@\s\"']*@")


def text_without_secrets(text: str) -> str:
    """A plan's text with the password of every connection string in it replaced by `***`.

    >>> text_without_secrets('dsn = "postgresql://scott:tiger@db/orders"')
    'dsn = "postgresql://scott:***@db/orders"'
    >>> text_without_secrets('dsn = "host=db password=tiger"')
    'dsn = "host=db password=***"'
    """
    text = _IN_TEXT.sub(r"\1:***@", text)
    text = _URL_SECRET.sub(r"\1***", text)
    return _TEXT_SECRET.sub(lambda match: f"{match[1]}=***", text)
