"""Conversion of the engines' conditions to one form: the parts of an AND, without brackets, casts or qualifiers.

>>> atoms("((region#2 = south) AND (o.amount > 90))")
('region = south', 'amount > 90')
>>> atoms('(col("region") == "south") & (col("amount") > 90)')
('region = south', 'amount > 90')
"""

from __future__ import annotations

import re

_AND = re.compile(r"(?<!\s)\s++(?:AND|and|&)\s++")
_RULES = (
    (re.compile(r'col\("([^"]*)"\)'), r"\1"),
    (re.compile(r"#\d+L?"), ""),
    (re.compile(r"(?<![\w.])(?:\w+(?:\.|::))+(?=[A-Za-z_])"), ""),
    (re.compile(r"(?i)\bcast\s*\(\s*([^()]+?)\s+as\s+[^()]+\)"), r"\1"),
    (re.compile(r"::\w+(?:\(\d+(?:,\d+)?\))?"), ""),
    (re.compile(r"==+"), "="),
    (re.compile(r"[\"'\[\]]"), ""),
)


def atoms(text: str) -> tuple[str, ...]:
    """Return the parts of a condition that are joined by AND, each in the common form."""
    text = _bare(text.strip())
    parts, depth, start = [], 0, 0
    at = 0
    while at < len(text):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text[at], 0)
        found = _AND.match(text, at) if depth == 0 else None
        if found:
            parts.append(text[start:at])
            at = start = found.end()
        else:
            at += 1
    parts.append(text[start:])
    if len(parts) > 1:
        return tuple(one for part in parts for one in atoms(part))
    return (one,) if (one := canonical_condition(text)) else ()


def _bare(text: str) -> str:
    """Return the text without brackets that enclose all of it."""
    while text[:1] in ("(", "[") and text[-1:] in (")", "]"):
        depth = 0
        for at, letter in enumerate(text):
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
            if depth == 0 and at < len(text) - 1:
                return text
        text = text[1:-1].strip()
    return text


def canonical_condition(text: str) -> str:
    """Return one condition in the common form."""
    for pattern, to in _RULES:
        text = pattern.sub(to, text)
    text = re.sub(r"(<=|>=|!=|<>|=|<|>)", r" \1 ", _bare(text.strip()))
    return " ".join(text.split())
