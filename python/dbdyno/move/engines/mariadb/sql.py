"""Names, literals and checks of user-given SQL, in MariaDB's syntax."""

from __future__ import annotations

import re
from functools import partial

from dbdyno.base.errors import MoveError
from dbdyno.move.engines.postgres.sql import error_at

_NAME = re.compile(r"(?:`((?:[^`]|``)++)`|([^\s.`]++))(?:\s*+\.\s*+(?:`((?:[^`]|``)++)`|([^\s.`]++)))?")
_TOKEN = re.compile(
    r"""
    (?P<skip> --(?=[\s])[^\n]*+ | \#[^\n]*+ | '(?:[^'\\]|\\.|'')*+' | "(?:[^"\\]|\\.|"")*+" | `(?:[^`]|``)*+` )
    | (?P<comment> /\* )
    | (?P<mark> [()\[\];'"`] )
    """,
    re.VERBOSE | re.DOTALL,
)
_PAIR = {")": "(", "]": "["}
_not_whole = partial(error_at, step="give one complete SQL expression")


def quote_name(*names: str) -> str:
    """Return the name in backquotes; several names are joined by dots, and empty ones are left out."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names if name)


def literal(value: str | int) -> str:
    """Return the value as an SQL literal, with quotes, backslashes and NUL characters escaped."""
    if isinstance(value, int):
        return str(value)
    return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\x00", "\\0") + "'"


def split_name(text: str, database: str) -> tuple[str, str]:
    """Return database and table of a name as SQL writes it; `database` is used if the name has only one part.

    Raises:
        MoveError: The text is not a table name, or no database is known.
    """
    found = _NAME.fullmatch(text.strip())
    parts = [part.replace("``", "`") for part in found.groups() if part] if found else []
    if not parts or (len(parts) == 1 and not database):
        raise MoveError(
            "is not a table name"
            if not parts
            else "does not name a database, and the connection has no default database",
            where=f"--table {text}",
            next_step="write database.table, with `backquotes` around names that contain dots or blanks",
        )
    return (parts[0], parts[1]) if len(parts) == 2 else (database, parts[0])


def checked_sql(text: str, option: str) -> str:
    """Return the user's SQL unchanged if it is one complete expression that cannot reach beyond surrounding brackets.

    Raises:
        MoveError: The SQL is empty, or a bracket, quote or comment is not balanced.
    """
    if not text.strip() or "\x00" in text:
        raise MoveError("is empty, or contains a NUL character", where=option, next_step="give an SQL expression")
    marks: list[str] = []
    at = 0
    while found := _TOKEN.search(text, at):
        at = found.end()
        if found["comment"]:
            end = text.find("*/", at)
            # MariaDB executes the contents of /*! and /*M! comments.
            if end < 0 or text[at : at + 1] in ("!", "M"):
                raise _not_whole(text, option, found.start(), "the comment is not closed, or MariaDB executes it")
            at = end + 2
        elif mark := found["mark"]:
            if mark in "([":
                marks.append(mark)
            elif mark not in _PAIR or not marks or marks.pop() != _PAIR[mark]:
                raise _not_whole(text, option, found.start(), f"{mark!r} is unmatched or not allowed here")
    if marks:
        raise _not_whole(text, option, len(text), f"{marks[-1]!r} is not closed")
    return text
