"""Statements that are left out: a rollback does not undo them, or they do no work of their own.

>>> reason_left_out("select * from orders where id = $1") is None
True
>>> reason_left_out("notify jobs")
'notify cannot be rehearsed: its effect is outside of the transaction'
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

_REHEARSED = ("select", "with", "insert", "update", "delete", "merge", "values", "table")
_CONTROL = [
    "begin",
    "start",
    "commit",
    "end",
    "rollback",
    "abort",
    "savepoint",
    "release",
    "prepare",
    "deallocate",
    "discard",
    "set",
    "reset",
    "show",
    "fetch",
    "move",
    "close",
    "declare",
    "listen",
    "unlisten",
    "execute",
]
_COMMENT = re.compile(r"\s*(?:--[^\n]*\n|/\*.*?\*/)", re.S)
_OUTSIDE = re.compile(
    r"setval|dblink\w*|lo_export|lo_import|pg_file_\w+|pg_(terminate|cancel)_backend|pg_reload_conf|pg_rotate_logfile\w*"
    r"|pg_switch_(wal|xlog)|pg_create_restore_point|pg_(start|stop)_backup|pg_backup_(start|stop)|pg_promote"
    r"|pg_(wal|xlog)_replay_\w+|pg_(try_)?advisory_(un)?lock(_shared|_all)?|pg_stat_reset\w*|pg_stat_statements_reset"
    r"|pg_(create|copy|drop|sync)_\w*slots?|pg_replication_slot_advance|pg_replication_origin_\w+"
    r"|pg_logical_slot_\w+|pg_logical_emit_message|pg_log_\w+"
)
"""Functions of the server and its own extensions with effects that a rollback does not undo."""
_SKIPPED = re.compile(
    r"(?:[eE]'(?:[^'\\]|''|\\.)*+'|'(?:[^']|'')*+'|(\$(?:[^\W\d]\w*)?\$).*?\1|\"(?:[^\"]|\"\")*+\")"
    r"|--[^\n]*|/\*.*?\*/",
    re.S,
)
"""Pattern of what is skipped: literals, quoted names and comments."""
_CHANGING = re.compile(r"pg_(try_)?advisory_xact_lock\w*|lo_\w+|lowrite|nextval|set_config|txid_current|pg_notify")
"""Functions of the server that change or lock something until the end of the transaction."""
_NAMED = re.compile(r"(?<![\w$])[\w$]++")
_CALLED = re.compile(r"(?<![\w$])([\w$]++)\"?\s*+(?:\(|/\*|--)")
"""Pattern of a word before a parenthesis or comment; it matches no quotes: one in a literal would hide later calls."""
_ESCAPED = re.compile(r"(?<![\w$])u&\"", re.I)
_WRITES = re.compile(r"(?<!\bfor )(?<!\bkey )\b(insert|update|delete|merge|truncate|copy)\b", re.I)
_LOCKS = re.compile(r"\bfor\s+(no\s+key\s+update|update|key\s+share|share)\b", re.I)


@dataclass(frozen=True, slots=True)
class WordSet:
    """Set of lower-case words of a text.

    Attributes:
        called: Words before a parenthesis: functions, types with a length and words of SQL.
        named: All words, also those in literals and comments.
        writes: True if one of the words writes to tables.
    """

    called: frozenset[str]
    named: frozenset[str]
    writes: bool


def words_of(text: str) -> WordSet:
    """Return the words of a text in lower case.

    >>> sorted(words_of('select "Max" /* of */ (a), pg_catalog.abs(b)').called)
    ['abs', 'max']
    """
    called = frozenset(word.lower() for word in _CALLED.findall(text))
    return WordSet(called, frozenset(word.lower() for word in _NAMED.findall(text)), _WRITES.search(text) is not None)


@dataclass(frozen=True, slots=True)
class OutsideEffects:
    """Functions, tables and views with effects that a rollback does not undo, indexed by one word of each name.

    Attributes:
        functions: Functions with such an effect, and what they finally call or read: a function, or a foreign table.
        read: Tables and views with such an effect when they are read.
        written: Tables and views with such an effect when they are written to, for example by a trigger.
        volatile: Names of all functions that may change data.
        allowed: Functions and tables that the user allows nevertheless.
    """

    functions: Mapping[str, str] = field(default_factory=dict)
    read: Mapping[str, str] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)
    volatile: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()

    def find_effect(self, words: WordSet) -> tuple[str, str, str] | None:
        """Return verb, name and effect if a statement or function body has an effect outside the transaction.

        >>> OutsideEffects(written={"orders": "dblink_exec"}).find_effect(words_of("update orders set paid = true"))
        ('uses', 'orders', 'dblink_exec')
        """
        for name in sorted(words.called - self.allowed):
            if name in self.functions or _OUTSIDE.fullmatch(name):
                return "calls", name, self.functions.get(name, name)
        for tables in (self.read, self.written if words.writes else {}):
            if found := (words.named & tables.keys()) - self.allowed:
                return "uses", min(found), tables[min(found)]
        return None


def has_outside_effect(name: str) -> bool:
    """Return True for a function of the server or its own extensions with effects that a rollback does not undo."""
    return _OUTSIDE.fullmatch(name) is not None


def function_word(name: str) -> str:
    """Return the part of a function's name that precedes the parenthesis of a call (`b` of `a.b(1)`), in lower case."""
    return _words(name)[-1]


def table_word(name: str) -> str:
    """Return the longest word of a table's name in lower case; every text that names the table contains it.

    >>> table_word("All orders")
    'orders'
    """
    return max(_words(name), key=len)


def _words(name: str) -> list[str]:
    return [str(word).lower() for word in _NAMED.findall(name)] or [name.lower()]


NO_OUTSIDE_EFFECTS = OutsideEffects()


def reason_left_out(text: str, outside: OutsideEffects = NO_OUTSIDE_EFFECTS) -> str | None:
    """Return why a statement is left out, or None if it is rehearsed.

    Args:
        text: The statement.
        outside: Objects of the database with effects that a rollback does not undo.
    """
    first = first_word(text)
    if first in _CONTROL:
        is_commit = first in ("commit", "end")
        depends = f"the time of {first} depends on its whole transaction: only --replay includes it"
        return depends if is_commit else f"{first} does no work of its own"
    if first not in _REHEARSED:
        kind = "a definition" if first in ("create", "alter", "drop", "grant", "revoke", "comment") else first
        what = kind or "an empty statement"
        return f"{what} cannot be rehearsed: its effect is outside of the transaction"
    words = words_of(text)
    if "pg_sleep" in words.called:
        return "it sleeps, which is no database time"
    if _ESCAPED.search(text):
        return "it has names with Unicode escapes, which are not resolved"
    if (found := outside.find_effect(words)) is None:
        return None
    verb, name, root = found
    what = root if root == f"{FOREIGN_TABLE} {name}" else f"{name}{'' if root == name else f', which reaches {root}'}"
    why = "whose rows are on another server" if root.startswith(FOREIGN_TABLE) else "whose effect is not rolled back"
    return f"it {verb} {what}, {why}"


FOREIGN_TABLE = "the foreign table"


def may_change(text: str, volatile: Collection[str]) -> bool:
    """Return True if a statement may change or lock rows, and must therefore be undone after each execution.

    >>> may_change("select a from t", ()), may_change("select a from t for update", ())
    (False, True)
    """
    words = words_of(text)
    changes = (
        words.writes or any(_CHANGING.fullmatch(name) for name in words.called) or not words.called.isdisjoint(volatile)
    )
    return changes or first_word(text) != "select" or _LOCKS.search(text) is not None


def has_several(text: str) -> bool:
    """Return True if a text has several statements; semicolons in literals, names and comments do not count.

    >>> has_several("select ';' -- ;"), has_several("select 1; commit")
    (False, True)
    """
    return sum(bool(part.strip()) for part in _SKIPPED.sub(" ", text).split(";")) > 1


def without_comments(text: str) -> str:
    """Return a text with each comment replaced by a blank.

    >>> without_comments("select '--' /* all */ from t -- here")
    "select '--'   from t  "
    """
    return _SKIPPED.sub(lambda found: " " if found[0].startswith(("--", "/*")) else found[0], text)


def first_word(text: str) -> str:
    """Return the first word of a statement in lower case, after comments and parentheses."""
    rest = text
    while found := _COMMENT.match(rest):
        rest = rest[found.end() :]
    word = re.match(r"[\s(;]*([a-z]+)", rest, re.I)
    return word[1].lower() if word else ""
