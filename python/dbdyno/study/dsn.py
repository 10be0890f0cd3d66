"""Connection strings without their secrets; no database library needed."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

_SECRET = re.compile(r"(?i)\b(password|sslpassword|passfile|sslkey)\s*=\s*('(?:\\.|[^'])*'|\S+)")
_URL_SECRET = re.compile(r"(?i)([?&](?:password|sslpassword)=)[^&]*")


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
