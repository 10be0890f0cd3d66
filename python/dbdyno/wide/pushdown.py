"""The part of a query that Cassandra can evaluate under its own rules, and the CQL for it; contacts no server.

1. All columns of the partition key compared by `=` or `IN`: those partitions are read, each by its own statement.
   Otherwise every partition is read, by token ranges in parallel.
2. Within a partition, clustering columns compared by `=` or `IN`, from the first one on; the next one may have a range.
3. One indexed column compared by `=`.
4. LIMIT, if nothing has to be filtered here and one statement answers the query.
5. Only columns that are used.

Everything else stays in the query, and so does what is pushed down: DuckDB filters once more, so that Cassandra may
return more rows than needed, but never fewer. ALLOW FILTERING is added only on request, because it makes nodes read
rows that they then discard.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from dbdyno.wide.catalog import CLUSTERING, PARTITION, STATIC, WideColumn, WideTable
from dbdyno.wide.literals import as_cql, is_ordered
from dbdyno.wide.mapping import ELEMENT, PARENT, MappedColumn, Relation

PARTITIONS_MOST = 1000
"""Largest number of partitions that are read one by one; more are read by token ranges."""
RANGE = {">", ">=", "<", "<="}


@dataclass(frozen=True)
class Condition:
    """Comparison of an SQL column with constants: `=` and `in` with any number of them, ranges with one."""

    column: str
    op: str
    values: tuple[Any, ...]

    def __str__(self) -> str:
        shown = ", ".join(map(_sql_constant, self.values[:5])) + (", ..." if len(self.values) > 5 else "")
        return f"{self.column} in ({shown})" if self.op == "in" else f"{self.column} {self.op} {shown}"


def _sql_constant(value: Any) -> str:
    """Return a constant as SQL writes it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return str(value) if isinstance(value, int | float | Decimal) else "'" + str(value).replace("'", "''") + "'"


@dataclass(frozen=True)
class TableNeeds:
    """Columns, conditions and limit that a query needs from one SQL table.

    `whole` is True if there are no other conditions on the table.
    """

    columns: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()
    limit: int | None = None
    whole: bool = False


@dataclass(frozen=True)
class Statement:
    """CQL with placeholders.

    `partitions` holds the partition key values of each statement; None means that token ranges fill the first two
    placeholders.
    """

    cql: str
    partitions: tuple[tuple[Any, ...], ...] | None
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Scan:
    """Plan for reading one SQL table; `selected` are the Cassandra columns in the order of the statement."""

    relation: Relation
    table: WideTable
    selected: tuple[WideColumn, ...]
    columns: tuple[MappedColumn, ...]
    statement: Statement
    pushed: tuple[Condition, ...] = ()
    kept: tuple[Condition, ...] = ()
    limit: int | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)


@dataclass
class _Bound:
    """Conditions on one column, with their values converted for Cassandra."""

    equal: list[tuple[Condition, tuple[Any, ...]]] = field(default_factory=list)
    ranges: list[tuple[Condition, Any]] = field(default_factory=list)


def plan_scan(relation: Relation, table: WideTable, needs: TableNeeds, *, filtering: bool = False) -> Scan:
    """Return the plan for reading an SQL table for a query; `filtering` permits ALLOW FILTERING."""
    # Counting rows needs at least one column.
    columns = tuple(one for one in relation.columns if one.name in needs.columns) or relation.columns[:1]
    bounds = _bounds(relation, table, needs.conditions)
    pushed: list[Condition] = []
    partitions = _partitions(table, bounds, pushed)
    parts: list[str] = []
    values: list[Any] = []
    apart = is_distinct(relation, table)
    if partitions is not None and not apart:
        _push_clustering(table, bounds, pushed, parts, values)
    _push_indexed(table, bounds, pushed, parts, values, apart)
    if filtering and not apart:
        _push_filtered(table, bounds, pushed, parts, values)
    selected = _select_columns(relation, table, columns)
    limit = None
    exact = needs.whole and all(one in pushed for one in needs.conditions)
    # A partition that has only static columns counts as a row.
    if exact and needs.limit is not None and _is_row_for_row(relation, table):
        limit = needs.limit
    statement = _statement(table, selected, partitions, parts, values, distinct=apart, limit=limit)
    if filtering and not apart:
        statement = replace(statement, cql=f"{statement.cql} allow filtering")
    kept = tuple(one for one in needs.conditions if one not in pushed)
    return Scan(relation, table, selected, columns, statement, tuple(pushed), kept, limit)


def _is_row_for_row(relation: Relation, table: WideTable) -> bool:
    """Return True if each returned row is exactly one row of the SQL table."""
    return relation.rows == PARENT or (relation.rows != ELEMENT and not table.columns_with_roles(STATIC))


def is_distinct(relation: Relation, table: WideTable) -> bool:
    """Return True if a row of the SQL table is a whole partition that has several rows in the wide table."""
    if not table.columns_with_roles(CLUSTERING):
        return False
    column = table.column(relation.element) if relation.element else None
    return relation.rows == PARENT or (column is not None and column.role == STATIC)


def _bounds(relation: Relation, table: WideTable, conditions: Sequence[Condition]) -> Mapping[str, _Bound]:
    found: dict[str, _Bound] = {}
    for condition in conditions:
        mapped = relation.column(condition.column)
        column = table.column(mapped.of) if mapped is not None else None
        if column is None or mapped is None or not _is_plain(mapped, column):
            continue
        values = [as_cql(column.kind, value) for value in condition.values]
        if any(one is None for one in values):
            continue
        bound = found.setdefault(column.name, _Bound())
        if condition.op in RANGE:
            if is_ordered(column.kind):
                bound.ranges.append((condition, values[0]))
        else:
            bound.equal.append((condition, tuple(dict.fromkeys(values))))
    return found


def _is_plain(mapped: MappedColumn, column: WideColumn) -> bool:
    """Return True if SQL compares the column as Cassandra does, because the map keeps its type."""
    return mapped.sql == column.kind.sql or (column.kind.name == "decimal" and mapped.sql.startswith("decimal"))


def _partitions(
    table: WideTable, bounds: Mapping[str, _Bound], pushed: list[Condition]
) -> tuple[tuple[Any, ...], ...] | None:
    """Return the keys of the partitions that can hold an answer, or None for all partitions."""
    choices: list[tuple[Any, ...]] = []
    used: list[Condition] = []
    for column in table.columns_with_roles(PARTITION):
        bound = bounds.get(column.name)
        # 1.0 and 1.00 are different partitions but equal numbers.
        if bound is None or not bound.equal or column.kind.name == "decimal":
            return None
        choices.append(_common(bound, used))
    if _product(choices) > PARTITIONS_MOST:
        return None
    pushed += used
    return tuple(itertools.product(*choices))


def _common(bound: _Bound, used: list[Condition]) -> tuple[Any, ...]:
    """Return the values that all equality conditions on a column allow."""
    first, *others = bound.equal
    used += [condition for condition, _ in bound.equal]
    return tuple(value for value in first[1] if all(value in more for _, more in others))


def _product(choices: Sequence[Sequence[Any]]) -> int:
    count = 1
    for one in choices:
        count *= len(one)
    return count


def _push_clustering(
    table: WideTable, bounds: Mapping[str, _Bound], pushed: list[Condition], parts: list[str], values: list[Any]
) -> None:
    """Add equality conditions from the first clustering column on, then one range."""
    for column in table.columns_with_roles(CLUSTERING):
        bound = bounds.get(column.name)
        if bound is None:
            return
        if not bound.equal:
            _ranges(column, bound, pushed, parts, values)
            return
        choice = _common(bound, pushed)
        if len(choice) == 1:
            parts.append(f"{quote_cql(column.name)} = ?")
            values.append(choice[0])
        else:
            parts.append(f"{quote_cql(column.name)} in ?")
            values.append(list(choice))


def _ranges(column: WideColumn, bound: _Bound, pushed: list[Condition], parts: list[str], values: list[Any]) -> None:
    """Add the tightest lower and upper bound; Cassandra refuses two bounds on the same side."""
    for ops, tightest in (((">", ">="), max), (("<", "<="), min)):
        ends = [(condition, value) for condition, value in bound.ranges if condition.op in ops]
        if not ends:
            continue
        edge = tightest(value for _, value in ends)
        op = ops[0] if any(one.op == ops[0] and value == edge for one, value in ends) else ops[1]
        parts.append(f"{quote_cql(column.name)} {op} ?")
        values.append(edge)
        pushed += [condition for condition, _ in ends]


def _push_indexed(
    table: WideTable,
    bounds: Mapping[str, _Bound],
    pushed: list[Condition],
    parts: list[str],
    values: list[Any],
    apart: bool,
) -> None:
    if apart:
        return
    for name in sorted(table.indexed & set(bounds)):
        column, bound = table.column(name), bounds[name]
        equal = [(one, choice) for one, choice in bound.equal if len(choice) == 1 and one not in pushed]
        if column is not None and column.role not in (PARTITION, CLUSTERING) and equal:
            parts.append(f"{quote_cql(name)} = ?")
            values.append(equal[0][1][0])
            pushed.append(equal[0][0])
            return


def _push_filtered(
    table: WideTable, bounds: Mapping[str, _Bound], pushed: list[Condition], parts: list[str], values: list[Any]
) -> None:
    """Add conditions that need ALLOW FILTERING: the remaining conditions with a single value, one per column."""
    for name, bound in sorted(bounds.items()):
        column = table.column(name)
        if column is None or column.role == PARTITION or not column.kind.is_scalar:
            continue
        singles = [(one, choice[0]) for one, choice in bound.equal if len(choice) == 1 and one not in pushed]
        if singles and not any(quote_cql(name) in part for part in parts):
            parts.append(f"{quote_cql(name)} = ?")
            values.append(singles[0][1])
            pushed.append(singles[0][0])
        elif bound.ranges and not any(one in pushed for one, _ in bound.ranges) and not bound.equal:
            _ranges(column, bound, pushed, parts, values)


def _select_columns(relation: Relation, table: WideTable, columns: Sequence[MappedColumn]) -> tuple[WideColumn, ...]:
    """Return the Cassandra columns to read: those used, and one that shows whether a row exists."""
    names = {one.of for one in columns if not one.of.startswith("@")}
    if relation.rows == ELEMENT:
        names.add(relation.element)
    if relation.rows != PARENT or not table.columns_with_roles(CLUSTERING):
        first = table.columns_with_roles(CLUSTERING)[:1] or table.columns_with_roles(PARTITION)[:1]
        names |= {one.name for one in first if not is_distinct(relation, table)}
    if is_distinct(relation, table):
        # SELECT DISTINCT requires the whole partition key.
        names |= {one.name for one in table.columns_with_roles(PARTITION)}
    chosen = tuple(one for one in table.columns if one.name in names)
    return chosen or table.columns_with_roles(PARTITION)


def _statement(
    table: WideTable,
    selected: Sequence[WideColumn],
    partitions: tuple[tuple[Any, ...], ...] | None,
    parts: Sequence[str],
    values: Sequence[Any],
    *,
    distinct: bool,
    limit: int | None,
) -> Statement:
    key = [quote_cql(one.name) for one in table.columns_with_roles(PARTITION)]
    if partitions is None:
        token = f"token({', '.join(key)})"
        where = [f"{token} > ? and {token} <= ?", *parts]
    else:
        where = [*(f"{name} = ?" for name in key), *parts]
    names = ", ".join(quote_cql(one.name) for one in selected)
    end = f" limit {limit}" if limit is not None else ""
    word = "distinct " if distinct else ""
    cql = f"select {word}{names} from {quote_cql(table.name)} where {' and '.join(where)}{end}"  # noqa: S608
    return Statement(cql, partitions, tuple(values))


def quote_cql(name: str) -> str:
    """Return the name in double quotes for CQL."""
    return '"' + name.replace('"', '""') + '"'


def explain_pushdown(scan: Scan) -> Iterator[str]:
    """Yield lines with the CQL for Cassandra, the conditions pushed down, and those filtered here."""
    count = len(scan.statement.partitions) if scan.statement.partitions is not None else None
    how = "all partitions, by ranges of tokens" if count is None else f"{count} partition{'s' * (count != 1)} by key"
    yield f"{scan.relation.name}: {scan.relation.rows} of {scan.table.name}, {how}"
    yield f"  asked:         {scan.statement.cql}"
    yield f"  pushed:        {'; '.join(map(str, scan.pushed)) or 'nothing'}"
    yield f"  filtered here: {'; '.join(map(str, scan.kept)) or 'no condition on this table only'}"
    if scan.limit is not None:
        yield f"  limit:         {scan.limit:,} rows of each partition or range, then again here"
