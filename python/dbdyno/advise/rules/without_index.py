"""Rule: statements of MariaDB that read many rows to return a few."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.advise.engines.mariadb.parts import Digest, Status
from dbdyno.advise.engines.mariadb.window import statement_ms
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import beginning, count, share
from dbdyno.advise.kinds import Column, Index
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence, Rule

LEAST_CALLS, LEAST_EXAMINED, MOST_SENT, LEAST_SHARE, MOST = 10, 5000, 0.01, 0.01, 10
FEW = 0.01
"""Maximum share of a table's rows per value of a column, so that an index on it helps a query that aggregates."""
_EQUAL = re.compile(r"(?<!\w)(\w++)`?\s*+=\s*+\?")
_AGGREGATE = re.compile(r"\b(count|sum|avg|min|max|group_concat|group\s+by|distinct)\b", re.I)


def judge(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding per statement that filters without an index."""
    found = [one for one in facts.rows_of(Digest) if _is_wide(one)]
    if not found:
        return
    total = statement_ms(facts)
    if isinstance(total, InsufficientEvidence):
        yield total
        return
    for one in sorted(found, key=lambda digest: -digest.ms)[:MOST]:
        column = _selective(facts, one)
        if column is None and _AGGREGATE.search(one.text):
            continue  # the rows that an aggregate returns do not show how many it needed
        examined = one.examined / one.calls
        needed = max(one.sent / one.calls, column.commonest * examined if column else 1.0)
        gain = one.ms / total * (1 - needed / examined)
        if gain >= LEAST_SHARE:
            yield _advice(one, column, gain)


def _is_wide(digest: Digest) -> bool:
    if digest.calls < LEAST_CALLS or digest.without_index < digest.calls / 2:
        return False
    examined, sent = digest.examined / digest.calls, digest.sent / digest.calls
    return examined >= LEAST_EXAMINED and sent <= MOST_SENT * examined and " where " in digest.text.lower()


def _selective(facts: Facts, digest: Digest) -> Column | None:
    """Return the column that the statement compares with one value, if it is selective and no index begins with it."""
    condition = re.split(r"\bwhere\b", digest.text, maxsplit=1, flags=re.I)[-1]
    if re.search(r"\bor\b", condition, re.I):
        return None
    compared = {name.lower() for name in _EQUAL.findall(condition)}
    known = [
        each
        for each in facts.rows.get(Column, ())
        if each.name.lower() in compared
        and re.search(rf"(?<!\w){re.escape(each.table.rpartition('.')[2].strip('`'))}(?!\w)", digest.text, re.I)
        and each.values * FEW >= 1
        and not any(_begins(index, each) for index in facts.rows.get(Index, ()))
    ]
    return max(known, key=lambda each: each.values, default=None)


def _begins(index: Index, column: Column) -> bool:
    return index.table == column.table and index.columns[0].lower() == column.name.lower()


def _advice(digest: Digest, column: Column | None, gain: float) -> Advice:
    place = f"events_statements_summary_by_digest, {digest.identifier}"
    evidence = [
        Evidence("rows examined a call", digest.examined / digest.calls, "count", f"{place}, SUM_ROWS_EXAMINED"),
        Evidence("rows sent a call", digest.sent / digest.calls, "number", f"{place}, SUM_ROWS_SENT"),
        Evidence("calls", digest.calls, "count", f"{place}, COUNT_STAR"),
        Evidence("calls without an index", digest.without_index, "count", f"{place}, SUM_NO_INDEX_USED"),
        Evidence("time", digest.ms * 1e6, "ns", f"{place}, SUM_TIMER_WAIT"),
    ]
    fix = "-- use explain to see which columns the filter uses; create index ... on the columns compared with ="
    if column is not None:
        evidence.append(
            Evidence(f"values of {column.name}", column.values, "count", f"mysql.column_stats, {column.table}")
        )
        fix = f"create index ... on {column.table} ({column.name})"
    return Advice(
        f"“{beginning(digest.text)}” reads {count(digest.examined / digest.calls)} rows a call without an index and"
        f" sends {count(digest.sent / digest.calls)}",
        tuple(evidence),
        f"{share(gain)} of the time of statements at most, if an index finds the rows",
        (fix,),
        stake=gain,
        subject=f"statement {digest.identifier}",
    )


RULE = Rule(
    name="without_index",
    family="schema",
    title="Statements that read many rows without an index but send few",
    reads=(Status, Digest),
    condition="a statement with a filter has 10 calls and 1 % of the time, half of the calls without an index. It "
    "examines 5,000 rows per call or more and sends at most 1 % of them. A statement with aggregates must also "
    "compare a column that has no index with a single value, and a value of this column must occur in 1 % of the rows "
    "or fewer on average (known after analyze table ... persistent for columns)",
    expects="the statement's time, minus the time of a look-up",
    risk="every write maintains one more index",
    source="MariaDB documentation, Performance Schema, statement digests; Engine-Independent Table Statistics (2025)",
    refuted="it examines as many rows on a copy with the index",
    judge=judge,
    engines=("mariadb",),
)
