"""What a client says of an error, without the data that stand in it: evidence holds no values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbdyno.core_types import Script

_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'|«[^»]*»|“[^”]*”|\([^()]*\)=\([^)]*\)")
_NUMBER = re.compile(r"\d+")
OWN_CODES = ("P", "38", "39", "45", "XX")
"""Classes of SQLSTATE whose messages are the application's own."""


def without_values(code: str, text: str, scripts: Sequence[Script]) -> str:
    """An error in words; what is quoted or a number stays only where the scripts, which evidence has anyway, say it.

    >>> without_values("42P01", 'relation "t" does not exist', [{"name": "s", "text": "select 1 from t"}])
    'relation "t" does not exist (SQLSTATE 42P01)'
    >>> without_values("23505", 'duplicate key "k": (id)=(4711)', [{"name": "s", "text": "insert ..."}])
    'duplicate key "…": … (SQLSTATE 23505)'
    """
    known = "\n".join(script["text"] for script in scripts)
    if code.startswith(OWN_CODES):
        return f"(a message of the application's own code, left out) (SQLSTATE {code})"

    def quoted(match: re.Match[str]) -> str:
        inner = match[0][1:-1]
        if match[0].startswith("("):
            return "…"
        shown = not code.startswith("22") and inner.strip() and inner in known
        return match[0] if shown else f"{match[0][0]}…{match[0][-1]}"

    def number(match: re.Match[str]) -> str:
        return match[0] if match[0] in known or len(match[0]) < 2 else "…"

    text = text.split(" DETAIL:", maxsplit=1)[0].split(" LINE ", maxsplit=1)[0]
    return f"{_NUMBER.sub(number, _QUOTED.sub(quoted, text)).strip()} (SQLSTATE {code})"
