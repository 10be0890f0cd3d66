"""Rules that find causes in the load on PostgreSQL: temporary files, new sessions."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.snapshot.causes.change import Cause, Change
from dbdyno.snapshot.causes.statements import statement_label, statements_of_new_sessions
from dbdyno.snapshot.wording import rate_change

MANY_SESSIONS, STORM_WEIGHT = 10.0, 2.4
"""Smallest number of additional sessions per second for which the cause has a larger weight, and that weight.

The weight is above that of processors used by other programs, because new sessions use processors too: each one starts
a process of the server, and opening it also costs its client processor time.
"""


def spills(change: Change) -> Iterator[Cause]:
    """Yield a cause for statements that write temporary files and wrote few or none before."""
    found = [
        number
        for number, one in change.statements.items()
        if one.after.get("temp", 0) >= 1 and one.per_call("temp")[1] >= 2 * one.per_call("temp")[0] + 1
    ]
    if found:
        old, new = (
            sum(getattr(change.statements[n], end).get("temp", 0) for n in found) for end in ("before", "after")
        )
        words = f"sorts and hashes spill to temporary files: {statement_label(change.statements[found[0]])}"
        yield Cause(
            words, f"temporary blocks written {rate_change(old, new)}{_work_mem(change)}", frozenset(found), weight=2.6
        )


def _work_mem(change: Change) -> str:
    old, new = change.setting("work_mem")
    return f"; work_mem {old} → {new} kB" if old != new else ""


def connections(change: Change) -> Iterator[Cause]:
    """Yield a cause if sessions begin at least three times as often as before."""
    old, new = (side.get("sessions", 0.0) for side in change.totals("pg_stat_database", "sessions"))
    if new >= 3 * old and new - old >= 1:
        evidence = f"sessions begun {rate_change(old, new)}"
        weight = STORM_WEIGHT if new - old >= MANY_SESSIONS else 1.5
        yield Cause("many more sessions begin", evidence, statements_of_new_sessions(change, old, new), weight=weight)


RULES = (spills, connections)
