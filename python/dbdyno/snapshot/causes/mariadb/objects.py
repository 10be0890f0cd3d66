"""Rules that find causes in MariaDB's tables and indexes: dropped indexes, changed plans, growth, old row versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.base.sections import Row
from dbdyno.base.sql_text import literal
from dbdyno.snapshot.causes.change import Cause, Key
from dbdyno.snapshot.causes.mariadb.reading import MariadbChange
from dbdyno.snapshot.causes.statements import slower_at_same_work, statement_label
from dbdyno.snapshot.engines.mariadb.load import INDEXES, TABLES
from dbdyno.snapshot.model import instant_text
from dbdyno.snapshot.wording import rate_change, three_digits

_VERSIONS = 10_000


def dropped_indexes(change: MariadbChange) -> Iterator[Cause]:
    """Yield a cause for each index that disappeared between the start of the first period and the end of the second.

    Its table must still be known at the end. A statement must have become slower, or more rows must be fetched. The
    server notices a drop only at the table's next use.
    """
    for row in _gone(change):
        name = f"{row['OBJECT_SCHEMA']}.{row['OBJECT_NAME']}"
        slow, fetched = change.statements_of_table(name), _fetched(change, row)
        if not slow and fetched is not None and fetched[1] <= 1.1 * fetched[0]:
            continue
        part = _gone_in(change, row)
        if change.disappeared_early(part):
            continue
        yield Cause(
            f"index {row['INDEX_NAME']} on {name} was dropped",
            f"rows fetched of {name} {rate_change(*fetched) if fetched else 'not known'}{_scans(change, slow)}",
            slow,
            f"before {instant_text(part['at_us'] if part else change.after.after.at_ns // 1000)}",
            weight=3,
        )


def _gone(change: MariadbChange) -> list[dict[str, object]]:
    if not (change.is_in_both(INDEXES) and change.is_in_both(TABLES)):
        return []
    ends = [change.before.ends(INDEXES)[0], change.after.ends(INDEXES)[1], change.after.ends(TABLES)[1]]
    return change.before.query(
        f"select a.OBJECT_SCHEMA, a.OBJECT_NAME, a.INDEX_NAME from {ends[0]} a"
        f" anti join {ends[1]} b using (OBJECT_SCHEMA, OBJECT_NAME, INDEX_NAME)"
        f" semi join {ends[2]} t using (OBJECT_SCHEMA, OBJECT_NAME) order by all"
    )


def _fetched(change: MariadbChange, row: dict[str, object]) -> tuple[float, float] | None:
    table = change.tables.get((row["OBJECT_SCHEMA"], row["OBJECT_NAME"]))
    return (table.before.get("COUNT_FETCH", 0), table.after.get("COUNT_FETCH", 0)) if table else None


def _scans(change: MariadbChange, slow: frozenset[Key]) -> str:
    old, new = (sum(getattr(change.statements[n], end).get("no_index", 0) for n in slow) for end in ("before", "after"))
    return f", statements without an index {rate_change(old, new)}" if new > old else ""


def _gone_in(change: MariadbChange, row: Mapping[str, Any]) -> Row | None:
    """Return the sub-interval in which an index disappeared, or None if it disappeared in neither period."""
    names = ("OBJECT_SCHEMA", "OBJECT_NAME", "INDEX_NAME")
    return change.last_disappearance(INDEXES, " and ".join(f"{name} = {literal(row[name])}" for name in names))


def _more_rows(change: MariadbChange) -> dict[Key, float]:
    """Return the growth factor of rows examined per call for each slower statement, if it is at least 1.5."""
    found = {}
    for number, one in change.statements.items():
        old, new = one.per_call("work")
        if one.is_slower() and new >= 1.5 * max(old, 1.0) and new - old >= 10:
            found[number] = new / max(old, 1.0)
    return found


def grown_tables(change: MariadbChange) -> Iterator[Cause]:
    """Yield a cause for each table whose growth explains the additional rows that its statements examine.

    MariaDB does not count the rows of tables, so growth is computed as inserts minus deletes.
    """
    more = _more_rows(change)
    for table in change.tables.values():
        slow = change.statements_of_table(table.name) & more.keys()
        added = sum(
            (side.get("COUNT_INSERT", 0) - side.get("COUNT_DELETE", 0)) * one.seconds
            for side, one in ((table.before, change.before), (table.after, change.after))
        )
        grown = frozenset(
            n for n in slow if added >= 0.5 * (change.statements[n].per_call("work")[1] - _old(change, n)) > 0
        )
        if grown and added >= 100:
            most = max(grown, key=lambda n: change.statements[n].growth("ms"))
            old, new = change.statements[most].per_call("work")
            yield Cause(
                f"table {table.name} grew: its statements examine {three_digits(new / max(old, 1.0))} times the rows",
                f"rows added {added:,.0f}, rows examined per call {three_digits(old)} → {three_digits(new)}",
                grown,
                weight=2.2,
            )


def _old(change: MariadbChange, number: Key) -> float:
    return change.statements[number].per_call("work")[0]


def other_plans(change: MariadbChange) -> Iterator[Cause]:
    """Yield a cause for each statement that examines many more rows per call though no table grew or lost an index."""
    known = frozenset[Key]().union(*(c.statements for rule in (dropped_indexes, grown_tables) for c in rule(change)))
    for number, times in _more_rows(change).items():
        one = change.statements[number]
        if number in known or times < 3:
            continue
        old, new = one.per_call("work")
        without = "{:.3g} → {:.3g}".format(*one.per_call("no_index"))
        analyzed = "; ANALYZE TABLE ran" if any(change.status("com_analyze")) else ""
        yield Cause(
            f"many more rows are examined, because of another plan or other values: {statement_label(one)}",
            f"rows examined per call {three_digits(old)} → {three_digits(new)},"
            f" calls without an index {without}{analyzed}",
            frozenset([number]),
            weight=1.8,
        )


def unpurged_versions(change: MariadbChange) -> Iterator[Cause]:
    """Yield a cause if old row versions pile up, because an open transaction may need them or purge is too slow."""
    old, new = change.state("innodb_history_list_length")
    if new < _VERSIONS or new < 3 * old:
        return
    age = change.after.after.facts.get("oldest_transaction_us")
    held = f"; a transaction was open for {age / 1e6:.0f} s" if age and age >= 1e6 else ""
    yield Cause(
        "old row versions pile up: purge cannot keep up",
        f"history list {old:,.0f} → {new:,.0f}{held}",
        slower_at_same_work(change),
        weight=2.1,
    )


RULES = (dropped_indexes, grown_tables, other_plans, unpurged_versions)
