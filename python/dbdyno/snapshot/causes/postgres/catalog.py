"""Causes in the catalog: a statistics object that went, a sequence that keeps fewer values ready."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.snapshot.causes.change import Cause, Change, Key
from dbdyno.snapshot.causes.postgres.reachable_tables import WRITE
from dbdyno.snapshot.model import Row
from dbdyno.snapshot.wording import three


def dropped_statistics(change: Change) -> Iterator[Cause]:
    """A statistics object that went, where statements of its table take longer or do more work."""
    view = "pg_statistic_ext"
    if not change.both(view):
        return
    before, after = change.before.ends(view)[0], change.after.ends(view)[1]
    rows = change.before.query(
        f"select a.datid, a.stxname as name, a.stxrelid as relid from {before} a anti join {after} b"
        " on a.datid = b.datid and a.oid = b.oid order by 2"
    )
    for row in rows:
        table = change.tables.get((row["datid"], row["relid"]))
        slow = change.heavier_of(table.name) if table else frozenset[Key]()
        if table is not None and slow:
            yield Cause(
                f"statistics object {row['name']} on {table.name} was dropped",
                f"{change.work} per call {_work(change, slow)}",
                slow,
                weight=2.95,
            )


def shorter_sequences(change: Change) -> Iterator[Cause]:
    """A sequence of which a session keeps fewer values ready, where statements that may ask it do more work a call."""
    view = "pg_sequence"
    if not change.both(view):
        return
    before, after = change.before.ends(view)[0], change.after.ends(view)[1]
    rows = change.before.query(
        f"select b.datid, b.name, b.owner, a.seqcache as old, b.seqcache as new from {before} a join {after} b"
        " using (datid, seqrelid) where b.seqcache < a.seqcache order by 2"
    )
    for row in rows:
        slow = _asking(change, row)
        if slow:
            kept = f"{row['new']:,} value{'' if row['new'] == 1 else 's'}"
            yield Cause(
                f"sequence {row['name']} keeps {kept} ready, {row['old']:,} before",
                f"{change.work} per call {_work(change, slow)}",
                slow,
                weight=2.8,
            )


def _asking(change: Change, row: Row) -> frozenset[Key]:
    """Statements that do more work a call and may take a value of a sequence: by name, by nextval of a value that is
    not known, by an insert into the table that it is for."""
    owner = change.tables.get((row["datid"], row["owner"])) if row["owner"] is not None else None
    named = change.heavier_of(owner.name) if owner else ()
    writes = (n for n in named if WRITE.match(change.statements[n].text))
    asking = (n for n in change.naming.get("nextval", ()) if change.statements[n].heavier())
    return frozenset([*writes, *asking, *change.heavier_of(str(row["name"]))])


def _work(change: Change, some: frozenset[Key]) -> str:
    """The work of a call of that which grew most, in words."""
    first = max(some, key=lambda n: change.statements[n].grown("ms"))
    return " → ".join(map(three, change.statements[first].per_call("work")))


RULES = (dropped_statistics, shorter_sequences)
