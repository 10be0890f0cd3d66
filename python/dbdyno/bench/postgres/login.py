"""Reasons for failed logins in words: the server is unreachable, silent, or wants another user or password.

libpq reports a failure in several lines, the last of which may be a question ("Is the server running ...?") instead of
the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dbdyno.base.errors import TargetError

_ASKED = "Is the server running"
_UNREACHED = re.compile("Connection refused|No route to host|Network is unreachable|No such file|resolve host")
_SILENT = re.compile("timeout|no answer")
SHORT = 4


def login_error(error: Exception, where: str, secrets: Iterable[str]) -> TargetError:
    """Return a `TargetError` with the reason and the next step, with all secrets removed."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.startswith(_ASKED)] or [type(error).__name__]
    text = said[-1].removeprefix("connection failed: ")
    for secret in secrets:
        text = _without_secret(text, secret)
    verb = "connect" if _UNREACHED.search(text) else "log in"
    return TargetError(f"cannot {verb}: {text}", where=where, next_step=_step(text))


def _without_secret(text: str, secret: str) -> str:
    """Return the text with each occurrence of the secret replaced.

    A secret shorter than `SHORT` characters is replaced only as a whole word, because it would otherwise match parts of
    other words in the server's message.
    """
    if len(secret) < SHORT:
        return re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "...", text)
    return text.replace(secret, "...")


def _step(said: str) -> str:
    """Return the next step for libpq's message; it mentions a password only if the server answered."""
    if _SILENT.search(said):
        return (
            "check that the server is up and reachable, and that no session holds a lock on a system catalog such as "
            "pg_class: logins wait for such a lock"
        )
    if _UNREACHED.search(said):
        return "check that the server is up and listens there, and that host and port are right"
    return "try `psql` with the same connection string; give the password in PGPASSWORD or ~/.pgpass"
