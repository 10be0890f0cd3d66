"""Removal of values: literals in statements and in the conditions of plans are replaced by `?`.

    >>> mask_statement("select * from t where a = 'x' and b in (1, 2, 3) -- 5")
    'select * from t where a = ? and b in (?, …)'

If the end of a string is not certain (a backslash before its quote, whose meaning depends on
`standard_conforming_strings`; nested comments; a quote that is never closed), everything to the end of the text is
replaced.
"""

from __future__ import annotations

import re

LONGEST = 4000
"""Largest number of characters of a text that is stored."""

_VALUES = re.compile(
    r"""(?P<name>"(?:[^"]|""){1,128}+")
    |(?<![\w$])[eE]'(?:[^'\\]|''|\\.)*+'
    |(?:(?<![\w$])(?:[uU]&|[bBxXnN]))?'(?:[^'\\]|''|\\(?!'))*+'
    |["'].*+
    |\$(?P<tag>[^\W\d]\w*|)\$.*?(?:\$(?P=tag)\$|\Z)
    |(?P<comment>--[^\n]*+|/\*(?:[^*/]|\*(?!/)|/(?!\*))*+\*/|/\*.*+)
    |(?<![\w$])\.?\d[\w.]*+(?:(?<=[eE])[+-]\d++)?""",
    re.S | re.X,
)
_LISTS = re.compile(r"\?(?:\s*,\s*\?)++")
_CAST = re.compile(r"\?::(?:\"[^\"]*+\"|[\w.]++)(?: varying| precision| with(?:out)? time zone)?(?:\(\?\))?(?:\[\])*+")
_PLACEHOLDER = re.compile(r"\$\d++")
_QUALIFIER = re.compile(r"(?<![\w\"?.])(?:\w++|\"[^\"]*+\")\.(?=[\w\"])")


def mask_statement(text: str) -> str:
    """Return a statement on one line, without values and comments."""
    short = _LISTS.sub("?, …", " ".join(_replaced(text[: 4 * LONGEST]).split()))
    return short if len(short) <= LONGEST else short[: LONGEST - 1] + "…"


def mask_condition(text: str) -> str:
    """Return a plan's condition without values, casts of values, parameters and qualifiers.

    The result is the same with or without VERBOSE, and for a generic or a custom plan.
    """
    plain = _PLACEHOLDER.sub("?", _replaced(text.strip()))
    return _LISTS.sub("?, …", _QUALIFIER.sub("", _CAST.sub("?", plain)))


def _replaced(text: str) -> str:
    return _VALUES.sub(_value, text)


def _value(match: re.Match[str]) -> str:
    if match["name"] is not None:
        return match["name"]
    return " " if match["comment"] is not None else "?"
