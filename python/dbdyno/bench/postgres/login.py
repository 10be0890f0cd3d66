"""Why a server let nobody in, in words: it is not there, it is silent, or it wants another user or password.

libpq says it in several lines, of which the last may be a question ("Is the server running ...?") and no reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dbdyno.base.errors import TargetError

_ASKED = "Is the server running"
_UNREACHED = re.compile("Connection refused|No route to host|Network is unreachable|No such file|resolve host")
_SILENT = re.compile("timeout|no answer")
SHORT = 4


def login_failed(error: Exception, where: str, secrets: Iterable[str]) -> TargetError:
    """The error with its reason and next step; none of the secrets is in it."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.startswith(_ASKED)] or [type(error).__name__]
    text = said[-1].removeprefix("connection failed: ")
    for secret in secrets:
        text = _without(text, secret)
    verb = "connect" if _UNREACHED.search(text) else "log in"
    return TargetError(f"cannot {verb}: {text}", where=where, next_step=_step(text))


def _without(text: str, secret: str) -> str:
    """A text in which a secret stands no more. One of few letters is looked for as a word: each letter of the server's
    own words would be one."""
    if len(secret) < SHORT:
        return re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "...", text)
    return text.replace(secret, "...")


def _step(said: str) -> str:
    """A server that is not there, or silent, wants no password."""
    if _SILENT.search(said):
        return (
            "see that the server is up and nothing is between, and that no session holds a lock on a system catalog"
            " such as pg_class: logins wait for it"
        )
    if _UNREACHED.search(said):
        return "see that the server is up and listens there, and that host and port are right"
    return "try `psql` with the same connection string; give the password in PGPASSWORD or ~/.pgpass"
