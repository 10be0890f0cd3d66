"""Changes that define the new side (`--change`): session settings, or statements run in a copy of the database.

A change is refused if it would affect more than the copy (roles, databases, the whole server), or nothing, because its
effect ends with the session that executes it.

>>> is_setting("/* more memory */ SET work_mem = '1GB'"), is_setting("create index on t (a)")
(True, False)
"""

from __future__ import annotations

import re

from dbdyno.base.errors import TargetError
from dbdyno.rehearse.effects import first_word, without_comments, words_of

_SHARED = r"(?:database|role|group|tablespace|subscription|user(?!\s+mapping))\b"
_WIDE = re.compile(
    rf"\balter\s+system\b|\b(?:create|alter|drop)\s+{_SHARED}|\b(?:drop|reassign)\s+owned\b"
    rf"|\b(?:grant|revoke|comment|label)\b[^;]*\bon\s+{_SHARED}|^\s*(?:grant|revoke)\b(?!.*\bon\b)",
    re.I | re.S,
)
"""Statements with effects outside one database, also when they are inside DO."""
_BRIEF = re.compile(r"\s*set\s+(?:local|transaction|constraints|session\s+characteristics)\b", re.I)
_OF_SESSION = (
    "abort begin close commit deallocate declare discard end execute explain fetch listen load lock move notify prepare"
    " release reset rollback savepoint show start unlisten"
)


def is_setting(change: str) -> bool:
    """Return True if a change is a SET."""
    return first_word(change) == "set"


def refuse_change(change: str) -> None:
    """Raise an error if a change would have effects outside a copy of the database, or no effect at all.

    Raises:
        TargetError: The change has effects outside the copy, or no effect.
    """
    plain, first = without_comments(change), first_word(change)
    setting = "write it as set NAME = VALUE, which applies only to the new side's transactions"
    if found := _WIDE.search(plain):
        what = " ".join(found[0].split()[:2]).lower()
        raise TargetError(
            f"--change {change}: {what} changes the whole server, not only a copy of the database, and would "
            f"not be undone",
            next_step=f"{setting}; or apply the change manually on a separate server, and name both servers",
        )
    if _BRIEF.match(plain):
        raise TargetError(f"--change {change}: has no effect after the transaction that executes it", next_step=setting)
    if first in _OF_SESSION.split() or "set_config" in words_of(plain).called:
        raise TargetError(f"--change {change}: changes nothing that the rehearsal executes", next_step=setting)
    if not first:
        raise TargetError(f"--change {change!r} is not a statement", next_step="write an SQL statement")
