"""Events as a table for a page: sorted by time, and limited to the rarest kinds."""

from __future__ import annotations

from dbdyno.base.sections import Row, Table, columns, table
from dbdyno.snapshot.reading.timeline import KINDS

EVENTS_MOST = 40


def events_table(found: list[Row]) -> Table:
    """Return events as a table sorted by time; if there are too many, the rarest kinds are shown."""
    rows = [
        {
            "at": one["after_us"] if one["after_us"] is not None else one["at_us"],
            "until": one["at_us"] if one["after_us"] is not None else None,
            "kind": one["kind"],
            "what": one["what"],
        }
        for one in sorted(sorted(found, key=_rare)[:EVENTS_MOST], key=lambda one: one["at_us"])
    ]
    made = table("Events on the clock", columns("at:time until:time:and kind:text what:text"), rows)
    made["left_out"] = len(found) - len(rows)
    return made


def _rare(event: Row) -> int:
    """Return the rank of an event's kind, so that a dropped index comes before the hundredth vacuum."""
    return KINDS.index(event["kind"])
