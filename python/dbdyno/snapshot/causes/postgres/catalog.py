"""Rules that find causes in the catalog: a dropped statistics object, a sequence that caches fewer values."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.base.sections import Row
from dbdyno.snapshot.causes.change import Cause, Change, Key
from dbdyno.snapshot.causes.postgres.reachable_tables import WRITE
from dbdyno.snapshot.wording import three_digits


def dropped_statistics(change: Change) -> Iterator[Cause]:
    """Yield a cause for each dropped statistics object if statements on its table take longer or do more work."""
    for row in change.rows_of_ends(
        "pg_statistic_ext",
        "select a.datid, a.stxname as name, a.stxrelid as relid from {before} a anti join {after} b"
        " on a.datid = b.datid and a.oid = b.oid order by 2",
    ):
        table = change.tables.get((row["datid"], row["relid"]))
        slow = change.heavier_statements_of_table(table.name) if table else frozenset[Key]()
        if table is not None and slow:
            yield Cause(
                f"statistics object {row['name']} on {table.name} was dropped",
                f"{change.work} per call {_work(change, slow)}",
                slow,
                weight=2.95,
            )


def smaller_sequence_caches(change: Change) -> Iterator[Cause]:
    """Yield a cause for each sequence that caches fewer values per session, if statements using it do more work."""
    for row in change.rows_of_ends(
        "pg_sequence",
        "select b.datid, b.name, b.owner, a.seqcache as old, b.seqcache as new from {before} a join {after} b"
        " using (datid, seqrelid) where b.seqcache < a.seqcache order by 2",
    ):
        slow = _asking(change, row)
        if slow:
            kept = f"{row['new']:,} value{'' if row['new'] == 1 else 's'}"
            yield Cause(
                f"sequence {row['name']} caches {kept}; before it was {row['old']:,}",
                f"{change.work} per call {_work(change, slow)}",
                slow,
                weight=2.8,
            )


def _asking(change: Change, row: Row) -> frozenset[Key]:
    """Return the statements that take longer or do more work per call and may draw a value from a sequence.

    They name the sequence, call nextval with an argument that is not known, or write to the table that owns the
    sequence.
    """
    owner = change.tables.get((row["datid"], row["owner"])) if row["owner"] is not None else None
    named = change.heavier_statements_of_table(owner.name) if owner else ()
    writes = (n for n in named if WRITE.match(change.statements[n].text))
    asking = (n for n in change.statements_by_word.get("nextval", ()) if change.statements[n].is_heavier())
    return frozenset([*writes, *asking, *change.heavier_statements_of_table(str(row["name"]))])


def _work(change: Change, some: frozenset[Key]) -> str:
    """Return in words the work per call, before and after, of the statement whose time grew most."""
    first = max(some, key=lambda n: change.statements[n].growth("ms"))
    return " → ".join(map(three_digits, change.statements[first].per_call("work")))


RULES = (dropped_statistics, smaller_sequence_caches)
