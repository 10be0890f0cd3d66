"""Errors by name: the SQLSTATEs of PostgreSQL and the names of their conditions (`conditions.tsv`, a row per name), and
MariaDB's own errors, which go by a number (the core has their table).

A name may stand for several SQLSTATEs, as in PL/pgSQL. SQLSTATEs that no engine names are as good: one's own procedures
raise them. A name of MariaDB's stands for its number: several share one SQLSTATE.
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
    """Condition by SQLSTATE."""
    return {state: name for _, state, name in _rows()}


@functools.cache
def states() -> dict[str, list[str]]:
    """SQLSTATEs by condition."""
    found: dict[str, list[str]] = {}
    for _, state, name in _rows():
        found.setdefault(name, []).append(state)
    return found


def _rows() -> list[list[str]]:
    return [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]]


def is_state(text: str) -> bool:
    """Whether it has the form of a SQLSTATE."""
    return _STATE.fullmatch(text) is not None


def resolved(given: Iterable[str]) -> tuple[list[str], str | None]:
    """The SQLSTATEs and MariaDB's numbers that these codes and names stand for, in their order, each once; and the
    first that is neither."""
    found: dict[str, None] = {}
    for text in given:
        is_code = is_state(text) or _NUMBER.fullmatch(text) is not None
        own = [text] if is_code else states().get(text.lower()) or _numbers().get(text.upper(), [])
        if not own or any(state.startswith("00") for state in own):
            return list(found), text
        found |= dict.fromkeys(own)
    return list(found), None


def near(text: str) -> str:
    """The next step for what is neither."""
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
    """MariaDB's name for its number: "ER_DUP_ENTRY"; empty where there is none."""
    return _conditions().get(number, "") if number else ""


def meaning(state: str) -> str:
    """A SQLSTATE in words: "unique violation"; empty where no engine has a name for it."""
    return names().get(state, "").replace("_", " ")


def class_of(state: str) -> str:
    """The class of a SQLSTATE in words: "integrity constraint violation"; empty where it is nobody's but its user's."""
    return meaning(f"{state[:2]}000")
