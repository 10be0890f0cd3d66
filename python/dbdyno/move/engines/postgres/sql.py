"""Check that SQL given by the user is complete, so that none of it reaches beyond its place in a generated statement.

The server itself refuses a second statement (the extended protocol accepts one), and the session is read-only. This
check ensures that a condition does not close the surrounding brackets: quotes, comments and brackets must balance.
"""

from __future__ import annotations

import re

from dbdyno.base.errors import MoveError

_TOKEN = re.compile(
    r"""
    (?P<skip> --[^\n]*+ | [eE]'(?:[^'\\]|\\.|'')*+' | '(?:[^']|'')*+' | "(?:[^"]|"")*+" )
    | (?P<dollar> (?<![\w$])\$(?P<tag>(?:[A-Za-z_\u0080-\uffff]\w*+)?+)\$ )
    | (?P<comment> /\* )
    | (?P<mark> [()\[\];'"] )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")
_PAIR = {")": "(", "]": "["}


def checked_sql(text: str, option: str) -> str:
    """Return the text unchanged if it is one complete piece of SQL.

    Raises:
        MoveError: The text is empty or not complete; the error names the line and column.
    """
    if not text.strip():
        raise MoveError(
            "is empty; expected an SQL expression", where=option, next_step="leave it out, or give an SQL expression"
        )
    if "\x00" in text:
        raise MoveError("contains a NUL character", where=option, next_step="remove the NUL character")
    open_marks: list[tuple[str, int]] = []
    at = 0
    while found := _TOKEN.search(text, at):
        at = found.end()
        if found["dollar"]:
            at = _end(text, found.group(), at, option, found.start())
        elif found["comment"]:
            at = _comment_end(text, at, option, found.start())
        elif found["mark"]:
            _take(found["mark"], found.start(), open_marks, text, option)
    if open_marks:
        mark, place = open_marks[-1]
        raise error_at(text, option, place, f"{mark} is not closed")
    return text


def _take(mark: str, place: int, open_marks: list[tuple[str, int]], text: str, option: str) -> None:
    if mark in "([":
        open_marks.append((mark, place))
    elif mark in _PAIR:
        if not open_marks or open_marks.pop()[0] != _PAIR[mark]:
            raise error_at(text, option, place, f"{mark} has no matching opening bracket")
    elif mark == ";":
        if text[place + 1 :].strip() or option != "--query":
            raise error_at(
                text, option, place, "a semicolon is not allowed here: expected a single query or expression"
            )
    else:
        raise error_at(text, option, place, f"{mark} is not closed")


def _end(text: str, tag: str, at: int, option: str, place: int) -> int:
    found = text.find(tag, at)
    if found < 0:
        raise error_at(text, option, place, f"{tag} is not closed")
    return found + len(tag)


def _comment_end(text: str, at: int, option: str, place: int) -> int:
    """Return the position after a comment; comments may be nested."""
    depth = 1
    for found in _COMMENT.finditer(text, at):
        depth += 1 if found.group() == "/*" else -1
        if depth == 0:
            return found.end()
    raise error_at(text, option, place, "the comment is not closed")


def error_at(text: str, option: str, place: int, what: str, step: str = "correct the SQL; try it in psql") -> MoveError:
    """Return the error for a place in the user's SQL."""
    line = text.count("\n", 0, place) + 1
    column = place - (text.rfind("\n", 0, place) + 1) + 1
    return MoveError(what, where=f"{option}, line {line}, column {column}", next_step=step)
