"""log_line_prefix, the text before each line of a text log: matched by its pattern, or guessed from the line itself.

    >>> Prefix("%m [%p] %q%u@%d %Q ").read("2026-11-21 00:59:57.437 UTC [28] me@app 42 ")
    PrefixParts(stamp='2026-11-21 00:59:57.437 UTC', queryid=42, database='app')
    >>> Prefix(None).read("2026-11-21 00:59:57.437 UTC [28] user=me,db=app,qid=-4200000000000000042 ")
    PrefixParts(stamp='2026-11-21 00:59:57.437 UTC', queryid=-4200000000000000042, database='app')

The guess takes the first time; a database after `db=`, `database=` or `user@`; and as identifier a number after a word
that ends in `id=` (`qid=`, `queryid=`), or a number of 15 to 19 digits. If there are two such numbers, the prefix must
be specified.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dbdyno.base.errors import SnapshotError
from dbdyno.snapshot.plans.entries import queryid_of

STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
ZONE = r"(?:[A-Za-z][\w/+-]{0,30}|[+-]\d\d(?::?\d\d)?)"
_FIELDS = {
    "m": rf"(?P<m>{STAMP}\.\d{{3}} {ZONE})",
    "t": rf"(?P<t>{STAMP} {ZONE})",
    "n": r"(?P<n>\d{9,10}\.\d{3})",
    "Q": r"(?P<Q>-?\d{1,20})",
    "d": r"(?P<d>.*?)",
    "p": r"(?P<p>\d+)",
    "P": r"\d*",
    "l": r"\d+",
    "x": r"\d+",
    "c": r"(?P<c>[0-9a-f]+\.[0-9a-f]+)",
    "s": rf"(?P<s>{STAMP} {ZONE})",
    "e": r"(?P<e>[0-9A-Z]{5})",
    "u": r"(?P<u>.*?)",
    "a": r"(?P<a>.*?)",
    "b": r"(?P<b>.*?)",
}
"""Escapes with a known form; all others match any text."""
_ESCAPE = re.compile(r"%(?:(-?\d+))?([a-zA-Z%])")
_GUESS_TIME = re.compile(rf"{STAMP}(?:\.\d{{1,6}})?(?: {ZONE})?|(?<![\d.])\d{{10}}\.\d{{3}}(?![\d.])")
_GUESS_ID = re.compile(r"(?<![\w])(?:q|query_?|Q)id[=:] ?(-?\d{1,20})(?!\d)|(?<![\w.:-])(-?\d{15,19})(?![\w.:])", re.I)
_GUESS_DATABASE = re.compile(r"(?<![\w])(?:db|database)=([^\s,;\]]{1,63})|(?<![\w@])[\w.-]{1,63}@([^\s,;:\]@]{1,63})")


@dataclass(frozen=True, slots=True)
class PrefixParts:
    """The parts of a prefix; `stamp` is the time as text."""

    stamp: str
    queryid: int | None = None
    database: str = ""


class Prefix:
    """Parser of the text before a line's severity.

    `given` is the server's log_line_prefix, or None to guess.

    Raises:
        SnapshotError: The prefix has no time.
    """

    def __init__(self, given: str | None) -> None:
        self.pattern = None if given is None else _compiled(given)

    def read(self, text: str) -> PrefixParts | None:
        """Return the parts of a prefix, or None if it does not match or has no time."""
        if self.pattern is None:
            return _guessed(text)
        found = self.pattern.match(text)
        if found is None:
            return None
        named = found.groupdict()
        stamp = named.get("m") or named.get("t") or named.get("n") or ""
        return PrefixParts(stamp, queryid_of(named.get("Q")), (named.get("d") or "").strip())


def pattern_of(given: str) -> str:
    """Return the pattern that matches a log_line_prefix, with groups named by its escapes; a time is not required."""
    return _pattern(given)[0]


def _compiled(given: str) -> re.Pattern[str]:
    pattern, seen = _pattern(given)
    if not seen & {"m", "t", "n"}:
        raise SnapshotError(
            f"the line prefix {given!r:.80} has no field for the time",
            next_step="add %m, %t or %n to log_line_prefix, as in '%m [%p] '",
        )
    return re.compile(pattern)


def _pattern(given: str) -> tuple[str, set[str]]:
    """Return the pattern of a log_line_prefix, and the escapes in it."""
    parts, at, seen, options = [], 0, set(), 0
    for found in _ESCAPE.finditer(given):
        parts.append(re.escape(given[at : found.start()]))
        at = found.end()
        width, letter = found.groups()
        if letter == "%":
            parts.append("%")
        elif letter == "q":  # for background processes the prefix ends here
            parts.append("(?:")
            options += 1
        else:
            field = _FIELDS.get(letter, r".*?")
            field = re.sub(r"\(\?P<\w>", "(?:", field) if letter in seen else field
            seen.add(letter)
            parts.append(f" *{field} *" if width else field)
    parts.append(re.escape(given[at:]) + ")?" * options)
    return "".join(parts), seen


def _guessed(text: str) -> PrefixParts | None:
    stamp = _GUESS_TIME.search(text)
    if stamp is None:
        return None
    rest = text[: stamp.start()] + " " + text[stamp.end() :]
    number, database = _GUESS_ID.search(rest), _GUESS_DATABASE.search(rest)
    return PrefixParts(
        stamp[0],
        queryid_of(number[1] or number[2]) if number else None,
        (database[1] or database[2]) if database else "",
    )
