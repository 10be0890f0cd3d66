"""Rule: indexes that cost writes and are not scanned."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.dialect import BOTH, drop_index, index_name, place, source
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import MIB, count, duration, size
from dbdyno.advise.kinds import Database, Index, Table
from dbdyno.advise.rule import Advice, Evidence, Rule

LEAST_BYTES, LEAST_WRITES, LEAST_SCANS, MOST = MIB, 1000, 100, 20
ENOUGH_S = 35 * 86400.0
"""A month and a few days, in seconds: long enough to include jobs at the end of a month."""


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding per unused index, largest first."""
    tables = {one.name: one for one in facts.rows_of(Table)}
    current = [one for one in facts.rows_of(Database) if one.is_current]
    span_s = current[0].span_s if current else None
    found = [one for one in facts.rows_of(Index) if _is_idle(one, tables.get(one.table))]
    for one in sorted(found, key=lambda index: -index.bytes)[:MOST]:
        yield _advice(facts, one, tables[one.table], span_s)


def _is_idle(index: Index, table: Table | None) -> bool:
    if table is None or index.is_unique or index.is_constraint or index.is_replica_identity or not index.is_valid:
        return False
    used = table.seq_scans + (table.idx_scans or 0) >= LEAST_SCANS
    return index.scans == 0 and index.bytes >= LEAST_BYTES and _writes(table) >= LEAST_WRITES and used


def _writes(table: Table) -> int:
    return table.inserted + table.updated


def _advice(facts: Facts, index: Index, table: Table, span_s: float | None) -> Advice:
    enough = span_s is not None and span_s >= ENOUGH_S
    window = f"in {duration(span_s)}" if span_s is not None else "since its statistics began, at an unknown time"
    return Advice(
        f"index {index.name} on {index.table} was never scanned {window},"
        f" and {count(_writes(table))} rows were written",
        (
            Evidence("scans", index.scans, "count", place(facts, "scans", index.name)),
            Evidence("size", index.bytes, "bytes", place(facts, "size", index.name)),
            Evidence("rows inserted or updated", _writes(table), "count", place(facts, "writes", index.table)),
            Evidence(
                "scans of the table",
                table.seq_scans + (table.idx_scans or 0),
                "count",
                place(facts, "writes", index.table),
            ),
            Evidence("statistics cover", span_s, "span", place(facts, "span")),
        ),
        f"{size(index.bytes)} of disk and cache; an entry less per insert and per update that is not HOT, its WAL, and"
        " a little planning",
        (drop_index(facts, index),),
        level="warning" if enough else "hint",
        subject=index_name(facts, index),
        source=source(facts, "Performance Schema, table I/O"),
        risk="" if enough else "the statistics do not cover 35 days: jobs at the end of a month may need it",
    )


RULE = Rule(
    name="unused_index",
    family="schema",
    title="Indexes that nobody scans",
    reads=(Database, Table, Index),
    condition="the index has no scan and 1 MB or more, and is neither unique nor used by a constraint or as replica "
    "identity; its table had at least 1,000 rows written and 100 scans",
    expects="the cost of maintaining the index in every write",
    risk="standbys count their own scans, so check them too; the planner uses statistics of an expression index",
    source="PostgreSQL documentation, Examining Index Usage (2025)",
    refuted="a standby scans it, or somebody does within 35 days; or writes are not faster without it on a copy",
    judge=judge,
    engines=BOTH,
)
