"""Settings as evidence may hold them: where a secret may stand in a value, it is not shown."""

from __future__ import annotations

import re

SECRET_NAMES = re.compile(r"(passphrase|secret|token|_command$|^primary_conninfo$|password(?!_enc))")
"""Settings in whose value a secret may stand."""
CREDENTIALS = r"passw(or)?d\s*="
SECRET_WORDS = ("pass", "secret", "token", "_command", "conninfo")
"""One of them stands in every such name: a server finds a word in a third of the time that the pattern takes."""


def shown_value(name: str, value: str | None) -> str:
    """A setting's value as evidence may hold it: nothing in which a secret may stand."""
    text = value or ""
    if text and (SECRET_NAMES.search(name.lower()) or re.search(CREDENTIALS, text, re.I)):
        return "(hidden)"
    return text
