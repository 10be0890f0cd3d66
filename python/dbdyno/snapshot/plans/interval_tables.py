"""What is kept of a target's logs, made to tables beside an interval of snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.snapshot.plans import plan_store
from dbdyno.snapshot.plans.flips import names, seen

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval


def attached(first: Interval, last: Interval) -> list[plan_store.KeptLog]:
    """Makes `log_seen` of the first interval's connection, of all between the two's outer ends."""
    ends = (first.before.at_ns // 1000, last.after.at_ns // 1000)
    found = plan_store.attach(first.connection, first.store.folder, last.after.target, *ends)
    if found:
        seen(first.connection, names(last.after))
    return found
