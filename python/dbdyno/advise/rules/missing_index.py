"""Rule: statements that read half of a large table or more to return a few rows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import beginning, count, share
from dbdyno.advise.kinds import Column, HypotheticalIndex, Index, Statement, Table
from dbdyno.advise.rule import Advice, Evidence, Rule
from dbdyno.snapshot.engines.postgres.lookup_columns import has_aggregate, is_selective, lookup_columns

LEAST_PAGES, LEAST_CALLS, MOST_ROWS, LEAST_OF_TABLE, LEAST_SHARE, MOST = 1000, 10, 100, 0.5, 0.01, 10
SMALL_PAGES, SMALL_SHARE = 100, 0.1
"""For tables below `LEAST_PAGES`: minimum pages, and the minimum share of statement time that an index must save."""
LOOKED_UP = 10
"""Generous estimate of the number of pages that a look-up by an index reads."""


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding per statement and the largest table that it names."""
    for advice, _ in _findings(facts):
        yield advice


def candidates(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Return the tables and columns for which the rule would propose an index."""
    named = (target for _, target in _findings(facts) if target is not None)
    return tuple(dict.fromkeys((column.table, column.name) for column in named))


def _findings(facts: Facts) -> Iterator[tuple[Advice, Column | None]]:
    large = [one for one in facts.rows_of(Table) if (one.pages or 0) >= SMALL_PAGES and one.seq_scans >= LEAST_CALLS]
    total = sum(one.ms for one in facts.rows_of(Statement))
    for one in facts.rows_of(Statement)[:200]:
        if one.calls < LEAST_CALLS or " where " not in " ".join(one.text.lower().split()):
            continue
        if one.rows > MOST_ROWS * one.calls:
            continue
        named = [table for table in large if _names(one.text, table.name)]
        if not named or total <= 0:
            continue
        table = max(named, key=lambda table: table.pages or 0)
        column = _selective(facts, one, table)
        if column is not None or not has_aggregate(one.text):
            for advice in _read_whole(facts, one, table, total, column):
                yield advice, column


def _selective(facts: Facts, statement: Statement, table: Table) -> Column | None:
    """Return the column that the statement compares with one value, if it is selective and no index begins with it.

    The planner's statistics show how many rows the statement needed; the number of rows that an aggregate returns does
    not.
    """
    compared = lookup_columns(statement.text)
    indexed = {each.columns[0].strip('"') for each in facts.rows.get(Index, ()) if each.table == table.name}
    known = [
        each
        for each in facts.rows.get(Column, ())
        if each.table == table.name and each.name in compared - indexed and is_selective(each.values, each.commonest)
    ]
    return max(known, key=lambda each: each.values, default=None)


def _names(text: str, table: str) -> bool:
    name = table.rpartition(".")[2].strip('"')
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.I) is not None


def _read_whole(
    facts: Facts, statement: Statement, table: Table, total: float, column: Column | None
) -> Iterator[Advice]:
    pages, blocks = table.pages or 1, (statement.hits + statement.reads) / statement.calls
    needed = LOOKED_UP + (max(table.rows, 1) / column.values if column else 0.0)
    gain = statement.ms / total * (1 - needed / max(blocks, needed))
    least = LEAST_SHARE if pages >= LEAST_PAGES else SMALL_SHARE
    if blocks < LEAST_OF_TABLE * pages or table.seq_scans < statement.calls / 2 or gain < least:
        return
    place = f"pg_stat_statements, queryid {statement.identifier}"
    planned = _hypothetical(facts, column)
    refused = planned is not None and not planned.used
    yield Advice(
        f"“{beginning(statement.text)}” reads {count(blocks)} blocks a call and returns"
        f" {count(statement.rows / statement.calls)} rows;"
        f" {table.name} has {count(pages)}",
        (
            Evidence("blocks a call", blocks, "count", f"{place}, shared_blks_hit + shared_blks_read"),
            Evidence("rows a call", statement.rows / statement.calls, "number", f"{place}, rows"),
            Evidence("calls", statement.calls, "count", f"{place}, calls"),
            Evidence("time", statement.ms * 1e6, "ns", f"{place}, total_exec_time"),
            Evidence("pages of the table", table.pages, "count", f"pg_class, {table.name}, relpages"),
            Evidence("scans of the whole table", table.seq_scans, "count", f"pg_stat_user_tables, {table.name}"),
            Evidence("rows of a scan", table.seq_rows / table.seq_scans, "count", f"pg_stat_user_tables, {table.name}"),
            *_of_column(table, column),
            *_estimate_rows(planned),
        ),
        f"{share(gain)} of all statement time at most, if a look-up reads {count(needed)} pages instead"
        + ("; but the planner would not use an index on this column alone (HypoPG)" if refused else ""),
        _fix(table, column),
        level="hint" if refused else "warning",
        stake=gain,
        subject=f"statement {statement.identifier}",
    )


def _of_column(table: Table, column: Column | None) -> Iterator[Evidence]:
    if column is not None:
        rows = max(table.rows, 1) / column.values
        yield Evidence(f"rows of one value of {column.name}", rows, "number", f"pg_stats, {table.name}, {column.name}")


def _hypothetical(facts: Facts, column: Column | None) -> HypotheticalIndex | None:
    return next(
        (
            one
            for one in facts.rows.get(HypotheticalIndex, ())
            if column is not None and (one.table, one.column) == (column.table, column.name)
        ),
        None,
    )


def _estimate_rows(hypothetical_index: HypotheticalIndex | None) -> Iterator[Evidence]:
    """Yield the planner's cost estimates without and with the hypothetical index, labelled as estimates."""
    if hypothetical_index is not None:
        place = "HypoPG, explain of a look-up by this column"
        yield Evidence("estimated cost without the index", hypothetical_index.before, "number4", place)
        yield Evidence(
            "with it" if hypothetical_index.used else "with the index, which is not used",
            hypothetical_index.after,
            "number4",
            place,
        )


def _fix(table: Table, column: Column | None) -> tuple[str, ...]:
    if column is not None:
        return (f"create index concurrently on {table.name} ({column.name})",)
    return (
        "-- which columns does the filter use? explain (generic_plan) from PostgreSQL 16 on, else with values",
        f"create index concurrently on {table.name} (...)  -- first the columns compared with =, then one range column",
    )


RULE = Rule(
    name="missing_index",
    family="schema",
    title="Full scans of large tables for a few rows",
    reads=(Table, Statement),
    condition="a statement with a filter has 10 calls and 1 % of statement time. Per call it reads half of a table of "
    "1,000 pages or more (of 100 to 999 pages if it has 10 % of statement time) and returns 100 rows or "
    "fewer. The table had 10 full scans, and at least half as many as the statement had calls. A statement "
    "with aggregates must also compare a column that has no index with a single value, and a value of this column "
    "must occur in 1 % of the rows or fewer on average (pg_stats)",
    expects="the statement's time, minus the time of a look-up",
    risk="every write maintains one more index; rows scattered over the table make an index scan slow",
    source="pg_stat_statements (2025); PostgreSQL documentation, Indexes",
    refuted="EXPLAIN (ANALYZE, BUFFERS) reads as many blocks on a copy with the index",
    judge=judge,
)
