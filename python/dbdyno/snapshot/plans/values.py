"""Texts without values: literals of statements and of plans' conditions are replaced by `?`.

    >>> masked("select * from t where a = 'x' and b in (1, 2, 3) -- 5")
    'select * from t where a = ? and b in (?, …)'

Where it is not certain where a string ends (a backslash before its quote, which `standard_conforming_strings`
decides; nested comments; a quote that is never closed) everything to the end of the text is replaced.
"""

from __future__ import annotations

import re

LONGEST = 4000
"""Characters of a text that are kept."""

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


def masked(text: str) -> str:
    """A statement without values and comments, on one line."""
    short = _LISTS.sub("?, …", " ".join(_replaced(text[: 4 * LONGEST]).split()))
    return short if len(short) <= LONGEST else short[: LONGEST - 1] + "…"


def condition(text: str) -> str:
    """A plan's condition without values, casts of values, parameters and qualifiers: the same with VERBOSE or
    without, of a generic plan or of one for its values."""
    plain = _PLACEHOLDER.sub("?", _replaced(text.strip()))
    return _LISTS.sub("?, …", _QUALIFIER.sub("", _CAST.sub("?", plain)))


def _replaced(text: str) -> str:
    return _VALUES.sub(_value, text)


def _value(found: re.Match[str]) -> str:
    if found["name"] is not None:
        return found["name"]
    return " " if found["comment"] is not None else "?"
