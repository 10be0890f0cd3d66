"""Tables with the stored plans from a target's logs, in the database connection of an interval of snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.snapshot.plans import plan_store
from dbdyno.snapshot.plans.flips import create_log_seen, statement_names

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval


def attach_log_seen(first: Interval, last: Interval) -> list[plan_store.StoredLog]:
    """Create `log_seen` in the first interval's connection, from logs between the outer ends of both intervals.

    Returns the logs in the order of their `file` numbers; if there are none, no table is created.
    """
    ends = (first.before.at_ns // 1000, last.after.at_ns // 1000)
    found = plan_store.attach_logs(first.connection, first.store.folder, last.after.target, *ends)
    if found:
        create_log_seen(first.connection, statement_names(last.after))
    return found
