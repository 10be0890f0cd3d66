"""Statements that a rolled-back transaction cannot undo, or that do no work of their own: they are left out.

>>> reason_left_out("select * from orders where id = $1") is None
True
>>> reason_left_out("notify jobs")
'notify cannot be rehearsed: its effect is outside of the transaction'
"""

from __future__ import annotations

import re
from collections.abc import Iterable

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
_OUTSIDE = [
    "setval",
    "dblink",
    "dblink_exec",
    "dblink_connect",
    "dblink_send_query",
    "pg_notify",
    "lo_export",
    "lo_import",
    "pg_terminate_backend",
    "pg_cancel_backend",
    "pg_reload_conf",
    "pg_rotate_logfile",
    "pg_switch_wal",
    "pg_create_restore_point",
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
    "pg_advisory_unlock",
    "pg_advisory_unlock_all",
    "pg_file_write",
    "pg_stat_reset",
    "pg_stat_statements_reset",
    "pg_promote",
    "pg_create_physical_replication_slot",
    "pg_create_logical_replication_slot",
    "pg_drop_replication_slot",
    "pg_logical_slot_get_changes",
    "pg_replication_slot_advance",
]
"""Functions whose effects a rollback does not undo."""
_SKIPPED = re.compile(
    r"(?:[eE]'(?:[^'\\]|''|\\.)*+'|'(?:[^']|'')*+'|(\$(?:[^\W\d]\w*)?\$).*?\1|\"(?:[^\"]|\"\")*+\")"
    r"|--[^\n]*|/\*.*?\*/",
    re.S,
)
"""Literals, quoted names and comments."""
_CALLED = re.compile(r"(?<![\w$])([a-z_][a-z0-9_$]*+)\s*+\(", re.I)


def reason_left_out(text: str, others: Iterable[str] = ()) -> str | None:
    """Return why a statement is left out, or None if it is rehearsed.

    Args:
        text: The statement.
        others: Names of further functions whose effects a rollback does not undo.
    """
    first = first_word(text)
    if first in _CONTROL:
        return f"{first} does no work of its own"
    if first not in _REHEARSED:
        words = "a definition" if first in ("create", "alter", "drop", "grant", "revoke", "comment") else first
        what = words or "an empty statement"
        return f"{what} cannot be rehearsed: its effect is outside of the transaction"
    called = {name.lower() for name in _CALLED.findall(text)}
    if "pg_sleep" in called:
        return "it sleeps, which is no database time"
    effect = sorted(called & {*_OUTSIDE, *others})
    return f"it calls {effect[0]}, whose effect is not rolled back" if effect else None


def has_several(text: str) -> bool:
    """Return True if a text has several statements; a semicolon in a literal, a name or a comment divides none.

    >>> has_several("select ';' -- ;"), has_several("select 1; commit")
    (False, True)
    """
    return sum(bool(part.strip()) for part in _SKIPPED.sub(" ", text).split(";")) > 1


def first_word(text: str) -> str:
    """Return the first word of a statement in lower case, behind comments and parentheses."""
    rest = text
    while found := _COMMENT.match(rest):
        rest = rest[found.end() :]
    word = re.match(r"[\s(;]*([a-z]+)", rest, re.I)
    return word[1].lower() if word else ""
