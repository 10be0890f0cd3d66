"""Errors by name: PostgreSQL's condition names with their SQLSTATEs, and MariaDB's errors with their numbers.

PostgreSQL's names are in `conditions.tsv`, a row per name; MariaDB's are in the core. A name can mean several
SQLSTATEs, as in PL/pgSQL. SQLSTATEs without a name are also valid, because user procedures raise them. A MariaDB name
means its number, because several errors share one SQLSTATE.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable
from pathlib import Path

TABLE = Path(__file__).with_name("conditions.tsv")
_STATE = re.compile(r"[0-9A-Z]{5}")
_NUMBER = re.compile(r"[134][0-9]{3}")


@functools.cache
def names() -> dict[str, str]:
    """Return the condition name of each SQLSTATE."""
    return {state: name for _, state, name in _rows()}


@functools.cache
def states() -> dict[str, list[str]]:
    """Return the SQLSTATEs of each condition name."""
    found: dict[str, list[str]] = {}
    for _, state, name in _rows():
        found.setdefault(name, []).append(state)
    return found


def _rows() -> list[list[str]]:
    return [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]]


def is_state(text: str) -> bool:
    """Return True if the text has the form of a SQLSTATE."""
    return _STATE.fullmatch(text) is not None


def resolve_codes(given: Iterable[str]) -> tuple[list[str], str | None]:
    """Return the SQLSTATEs and MariaDB numbers for these codes and names, in order and without duplicates.

    The second value is the first text that is neither a code nor a name, or None.
    """
    found: dict[str, None] = {}
    for text in given:
        is_code = is_state(text) or _NUMBER.fullmatch(text) is not None
        own = [text] if is_code else states().get(text.lower()) or _numbers().get(text.upper(), [])
        if not own or any(state.startswith("00") for state in own):
            return list(found), text
        found |= dict.fromkeys(own)
    return list(found), None


def suggestion(text: str) -> str:
    """Return the next step of an error message about a text that is neither a code nor a name."""
    known = [*states(), *map(str.lower, _numbers())]
    close = difflib.get_close_matches(text.lower(), known, 1)
    return (
        f"did you mean {close[0]!r}?"
        if close
        else "write five characters such as 23505, a number of MariaDB's such as 1062, or a name: unique_violation"
    )


@functools.cache
def _conditions() -> dict[int, str]:
    from dbdyno import _core

    return {number: name for number, _, name in _core.mariadb_errors()}


def _numbers() -> dict[str, list[str]]:
    return {name: [str(number)] for number, name in _conditions().items()}


def condition_of(number: int | None) -> str:
    """Return MariaDB's name for an error number, such as "ER_DUP_ENTRY"; empty if there is none."""
    return _conditions().get(number, "") if number else ""


def meaning(state: str) -> str:
    """Return a SQLSTATE in words, such as "unique violation"; empty if no engine has a name for it."""
    return names().get(state, "").replace("_", " ")


def class_of(state: str) -> str:
    """Return the class of a SQLSTATE in words, such as "integrity constraint violation"; empty if it has none."""
    return meaning(f"{state[:2]}000")
