"""Events of a long stretch by the kept sums alone: no snapshot is opened.

Starts, crashes and resets by the verdicts of the sub-intervals; tables, indexes and functions that came or went by
the rows that begin or end. `timeline` knows more (checkpoints, vacuums, settings), and reads every snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain as joined

from dbdyno.snapshot.difference import quoted
from dbdyno.snapshot.interval import Interval
from dbdyno.snapshot.model import Row

OBJECTS = (
    ("table", "pg_stat_user_tables", ("schemaname", "relname")),
    ("index", "pg_stat_user_indexes", ("schemaname", "indexrelname")),
    ("function", "pg_stat_user_functions", ("schemaname", "funcname")),
)
_KINDS = {"restart": "restart", "crash": "restart", "failover": "restart", "reset": "reset"}
MOST = 200


def happenings(one: Interval) -> list[Row]:
    """The events of a stretch by their time, as rows of `timeline.events`."""
    found = joined(_of_verdicts(one), _of_objects(one))
    return sorted(found, key=lambda row: (row["at_us"], row["kind"], row["what"]))


def _of_verdicts(one: Interval) -> Iterator[Row]:
    seen = set()
    for part in one.sums.parts():
        for _, _, word, why, at_us, *_ in part["verdicts"]:
            if word in _KINDS and why not in seen:
                seen.add(why)
                before = part["at_us"] - part["elapsed_ns"] // 1000
                known = at_us is not None
                yield {
                    "kind": _KINDS[word],
                    "what": why,
                    "at_us": at_us if known else part["at_us"],
                    "after_us": None if known else before,
                }


def _of_objects(one: Interval) -> Iterator[Row]:
    """A row for each table, index and function that came or went, at most `MOST` of a kind."""
    parts = {part["number"]: part for part in one.sums.parts()}
    for kind, view, names in OBJECTS:
        source, columns = one.sums.relation(view, folded=False)
        known = {c.name for c in columns}
        if not source or not set(names) <= known:
            continue
        shown = ["datname", *names] if len(one.after.facts.get("databases") or ()) > 1 and "datname" in known else names
        named = " || '.' || ".join(quoted(name) for name in shown)
        rows = one.query(
            f"select part, {named} as name, life from {source} where life in ('new', 'gone')"
            f" and verdict in ('ok', 'partial') order by part, 2 limit {MOST}"
        )
        for row in rows:
            part = parts.get(row["part"])
            if part is not None:
                yield {
                    "kind": "object",
                    "what": f"{kind} {row['name']} {'came' if row['life'] == 'new' else 'went'}",
                    "at_us": part["at_us"],
                    "after_us": part["at_us"] - part["elapsed_ns"] // 1000,
                }
