"""Texts, plans and server messages without the values of a load.

>>> hide_literals("select * from people where email = 'a@b.org' and id in (7, 8) and name = $1")
"select * from people where email = '?' and id in (?, ?) and name = $1"
>>> hidden_message("P0001", "customer Miller is blocked", is_raised=True)
'RaiseException'
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from dbdyno.rehearse.statement import Load
from dbdyno.snapshot.engines.postgres.texts import without_literals

_NUMBER = re.compile(r"(?<![\w$.])\d[\w.]*(?:(?<=[eE])[+-]\d+)?")
_NEAR = re.compile(r'"((?:[^"]|"")*)"')
_OPERATORS = frozenset(
    {".", ",", ";", ":", "(", ")", "[", "]", "*", "=", "<", ">", "+", "-", "/", "%", "::", ":=", "=>"}
)
"""Operators and punctuation that a syntax error may quote; they reveal no value."""
_WORDED = ("08", "0A", "23", "25", "40", "42", "53", "55", "57", "58")
"""Error classes whose messages name objects and SQL keywords, but no values."""
_NAMES = frozenset(
    {
        "Node Type",
        "Operation",
        "Parent Relationship",
        "Relation Name",
        "Schema",
        "Alias",
        "Index Name",
        "Join Type",
        "Scan Direction",
        "Strategy",
        "Partial Mode",
        "Command",
        "CTE Name",
        "Subplan Name",
        "Function Name",
        "Custom Plan Provider",
        "Sort Method",
        "Sort Space Type",
        "Cache Mode",
        "Settings",
        "Trigger Name",
        "Constraint Name",
        "Relation",
    }
)
"""Keys of a plan whose texts are object names."""


def hide_literals(text: str) -> str:
    """Return an SQL text with each literal replaced by a question mark."""
    return _NUMBER.sub("?", without_literals(text))


def hidden_plan(text: str) -> str:
    """Return a JSON plan without the literals in its conditions and expressions."""
    try:
        return json.dumps(_hidden_value(json.loads(text)))
    except ValueError:
        return ""


def hidden_message(sqlstate: str, message: str, *, is_raised: bool, sent: str = "") -> str:
    """Return a server's message without values, or the name of its condition if it may contain some.

    >>> hidden_message("42601", 'syntax error at or near "."', is_raised=False, sent="select user.name")
    'syntax error at or near "."'
    >>> hidden_message("42601", 'syntax error at or near "4711"', is_raised=False, sent="select 4711 4711")
    'syntax error at or near "?"'

    Args:
        sqlstate: The error's code.
        message: The server's message.
        is_raised: True if a user's function raised it, so that its text may contain anything.
        sent: The text that was sent; a word that the message quotes is kept if it is a name in this text.
    """
    if is_raised or not sqlstate.startswith(_WORDED):
        return _condition(sqlstate)
    names = set(re.findall(r"[^\W\d][\w$]*", hide_literals(sent).replace("'?'", " ")))
    return hide_literals(_NEAR.sub(lambda found: found[0] if _is_known(found[1], sqlstate, names) else '"?"', message))


def without_values(sqlstate: str, message: str, sent: str) -> str:
    """Return a server's message without quoted values and numbers; quoted object names stay.

    >>> without_values("22003", 'value "4111111111111111" is out of range for type integer', "")
    'value "?" is out of range for type integer'
    >>> without_values("42P01", 'relation "ord" does not exist', "select * from ord")
    'relation "ord" does not exist'
    """
    if sqlstate.startswith(_WORDED):
        return hidden_message(sqlstate, message, is_raised=False, sent=sent)
    return hide_literals(_NEAR.sub('"?"', message))


def hidden_load(load: Load) -> Load:
    """Return a load whose displayed texts have no literals; the statements sent are unchanged."""
    return replace(load, statements=[replace(one, text=hide_literals(one.text)) for one in load.statements])


def _is_known(word: str, sqlstate: str, names: set[str]) -> bool:
    # A syntax error quotes what was sent, a literal or a part of one; other errors quote names of objects.
    return sqlstate != "42601" or word in names or word in _OPERATORS


def _condition(sqlstate: str) -> str:
    from psycopg import errors

    try:
        return errors.lookup(sqlstate).__name__
    except KeyError:
        return f"error {sqlstate}"


def _hidden_value(value: object, key: str = "") -> object:
    if isinstance(value, Mapping):
        return value if key in _NAMES else {name: _hidden_value(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [_hidden_value(one, key) for one in value]
    return hide_literals(value) if isinstance(value, str) and key not in _NAMES else value
