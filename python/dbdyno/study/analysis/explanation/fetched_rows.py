"""Rows that an arm's transactions fetch, by table and index, as MariaDB's performance schema counts them.

The counters cover the whole server. Where only one arm runs between two readings, their growth belongs to that arm: in
its turns and, if arms alternate in slices, in the warm-up, which has a stretch for each arm. They include the work of
other sessions on the server, so they are not used if their sum differs from the rows that the load's sessions fetched
according to their session status.

After a table was altered, its counters start from zero at its next use, with the indexes that it has at that time. So
if an index was added or dropped, or a counter fell, the earlier reading of that table is taken as zero.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

from dbdyno.evidence.run import Block
from dbdyno.study.analysis.explanation.objects import ObjectCounters, transactions
from dbdyno.study.analysis.measured.measures import ArmMeasures

AGREES = 1.3
"""Largest ratio of counted rows to the sessions' fetched rows that is accepted; high, because a warm-up is short."""
ROUNDING = 5.0
"""Difference in rows per transaction up to which both counts always agree."""

SOURCE = "table_io_waits_summary_by_index_usage"
_READINGS = f"""
select block, at_ns, arm, object, value from metrics
where source = '{SOURCE}' and block in (select unnest($1::int[]))
order by block, at_ns, object
"""  # noqa: S608  # a constant of this module
Grown = dict[tuple[str, str], float]
"""Rows fetched by table and index."""
Indexes = dict[str, float]
"""Rows of one table fetched by each index; rows fetched without an index have an empty name."""
Reading = dict[str, Indexes]

Found = tuple[dict[str, ObjectCounters], dict[str, ObjectCounters], str]
"""Counters of tables and of indexes, both by name, and the source of the counts."""


def fetched_objects(connection: Any, arm: ArmMeasures, warmup: Sequence[Block], known: float | None) -> Found:
    """Return the tables and indexes that an arm reads, with their rows per transaction.

    They are counted in its blocks, or else in the warm-up. The result is empty if the rows are unknown or their sum
    does not agree with `known`, the rows that the arm's sessions fetch per transaction.
    """
    for blocks, when in ((arm.blocks, ""), (warmup, " in the warm-up")):
        found = _growth(connection, arm.name, [block.index for block in blocks])
        count = transactions(blocks, arm.number)
        if found is None or not count or known is None:
            continue
        rows = sum(found[0].values()) / count
        if abs(rows - known) > ROUNDING and not known / AGREES <= rows <= known * AGREES:
            break
        return *_objects_of(*found, count), f"{SOURCE}{when}"
    return {}, {}, ""


def _growth(connection: Any, arm: str, blocks: list[int]) -> tuple[Grown, Reading] | None:
    """Return the rows that an arm fetched by table and index, and the last reading; None if there are no readings."""
    grown: Grown = defaultdict(float)
    last: Reading | None = None
    for (_, before), (_, after) in _stretches(connection, arm, blocks):
        last = (last or {}) | after
        for table, indexes in after.items():
            for index, value in _difference(before.get(table, {}), indexes).items():
                grown[table, index] += value
    return None if last is None else (grown, last)


def _stretches(
    connection: Any, arm: str, blocks: list[int]
) -> Iterator[tuple[tuple[str, Reading], tuple[str, Reading]]]:
    """Yield pairs of successive readings in a block between which only this arm ran."""
    rows = connection.execute(_READINGS, [blocks]).fetchall()
    for _, own in groupby(rows, key=itemgetter(0)):
        readings = [_reading(list(one)) for _, one in groupby(own, key=itemgetter(1))]
        yield from (pair for pair in pairwise(readings) if pair[0][0] == pair[1][0] == arm)


def _reading(rows: list[tuple[Any, ...]]) -> tuple[str, Reading]:
    tables: Reading = {}
    for _, _, _, name, value in rows:
        table, _, index = name.rpartition("/")
        tables.setdefault(table, {})[index] = value
    return rows[0][2], tables


def _difference(before: Indexes, after: Indexes) -> Indexes:
    """Return the rows fetched from a table by each index between two readings of its counters.

    If the table was reopened in between, the counters began again at zero. The entry with an empty name exists only if
    rows were fetched without an index.
    """
    anew = before.keys() - {""} != after.keys() - {""} or any(after.get(one, 0) < before[one] for one in before)
    return {index: value - (0.0 if anew else before.get(index, 0.0)) for index, value in after.items()}


def _objects_of(grown: Grown, last: Reading, count: int) -> tuple[dict[str, ObjectCounters], dict[str, ObjectCounters]]:
    tables = {
        name: ObjectCounters(
            {
                "rows_scanned": grown[name, ""] / count,
                "rows_by_index": sum(grown[name, index] for index in indexes if index) / count,
            },
            {"indexes": float(len(indexes.keys() - {""}))},
        )
        for name, indexes in last.items()
        if any(key[0] == name and value for key, value in grown.items())
    }
    used = {
        f"{table}/{index}": ObjectCounters({"rows_by_index": grown[table, index] / count})
        for table in tables
        for index in last[table]
        if index
    }
    return tables, used
