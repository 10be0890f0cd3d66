"""Target table of a load: its columns, and checks that the rows fit into it without loss.

All rows are checked before the first is written: keys have values and are unique, a static column has one value per
partition, an instant has no more digits than Cassandra keeps. Cassandra itself would accept rows that violate this and
keep the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.base.errors import WideError
from dbdyno.evidence.memory import file_connection
from dbdyno.wide.catalog import CLUSTERING, PARTITION, REGULAR, STATIC, WideColumn, WideTable
from dbdyno.wide.pushdown import quote_cql
from dbdyno.wide.types import parse

CQL_TYPES = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "bool": "boolean",
    "string": "text",
    "large_string": "text",
    "binary": "blob",
    "large_binary": "blob",
    "date32[day]": "date",
}
"""CQL type of a column of a created table, by its Arrow type."""
_PLAIN = r"-?\d{1,28}(\.\d{1,10}0*)?"
"""Pattern of a number that fits decimal(38,10)."""


@dataclass(frozen=True)
class Shape:
    """Roles of the rows' columns: partition key, clustering key, and static columns."""

    table: str
    key: tuple[str, ...]
    cluster: tuple[str, ...]
    static: tuple[str, ...]


def cql_type(kind: str) -> str:
    """Return the CQL type for an Arrow type, or an empty string if there is none."""
    if kind.startswith("decimal"):
        return "decimal"
    if kind.startswith("timestamp"):
        return "timestamp"
    return CQL_TYPES.get(kind, "")


def plain_numbers(files: Sequence[Path], schema: Any, shape: Shape) -> frozenset[str]:
    """Return the text columns that hold PostgreSQL's unlimited numeric and whose values all fit decimal(38,10).

    They become numbers in Cassandra, too. Key columns are left out, because 1.0 and 1.00 would become the same key.
    """
    found = [one.name for one in schema if (one.metadata or {}).get(b"dbdyno.pg_type") == b"numeric"]
    found = [
        one for one in found if str(schema.field(one).type) == "string" and one not in (*shape.key, *shape.cluster)
    ]
    if not found:
        return frozenset()
    odd = ", ".join(f"count(*) filter (not regexp_full_match({quote_cql(one)}, '{_PLAIN}'))" for one in found)
    with file_connection() as duck:
        counts = duck.execute(f"select {odd} from read_parquet(?)", [[str(one) for one in files]]).fetchone()  # noqa: S608
    return frozenset(one for one, count in zip(found, counts or (), strict=True) if not count)


def _wanted_type(field: Any, numbers: AbstractSet[str]) -> str:
    return "decimal" if field.name in numbers else cql_type(str(field.type))


def table_for_rows(shape: Shape, schema: Any, numbers: AbstractSet[str] = frozenset()) -> WideTable:
    """Return the table that rows of this schema need.

    Args:
        shape: The roles of the columns.
        schema: The Arrow schema of the rows.
        numbers: Text columns that hold numbers.

    Raises:
        WideError: A column is missing, has two roles, or has a type that Cassandra does not have.
    """
    names = list(schema.names)
    for word, given in (("--key", shape.key), ("--cluster", shape.cluster), ("--static", shape.static)):
        lost = next((one for one in given if one not in names), None)
        if lost is not None:
            raise WideError(
                f"the rows have no column {lost!r}",
                where=word,
                next_step=f"name one of their columns: {', '.join(names)}",
            )
    if not shape.key:
        raise WideError(
            "does not name a partition key", where="--key", next_step="name the columns of the partition key with --key"
        )
    twice = next((one for one in names if (*shape.key, *shape.cluster, *shape.static).count(one) > 1), None)
    if twice is not None:
        raise WideError(
            f"column {twice} is named in two of --key, --cluster and --static", next_step="name the column once"
        )
    columns = []
    for field in schema:
        text = _wanted_type(field, numbers)
        if not text:
            raise WideError(
                f"is of type {field.type}, for which Cassandra has no type",
                where=f"column {field.name}",
                next_step="cast the column in the query, for example to text, or leave it out",
            )
        columns.append(WideColumn(field.name, _role(field.name, shape), parse(text, {})))
    order = {name: at for at, name in enumerate((*shape.key, *shape.cluster))}
    return WideTable(shape.table, tuple(sorted(columns, key=lambda one: order.get(one.name, len(order)))))


def _role(name: str, shape: Shape) -> str:
    if name in shape.key:
        return PARTITION
    if name in shape.cluster:
        return CLUSTERING
    return STATIC if name in shape.static else REGULAR


def create_cql(table: WideTable) -> str:
    """Return the CREATE TABLE statement."""
    columns = [
        f"{quote_cql(one.name)} {one.kind.name}{' static' if one.role == STATIC else ''}" for one in table.columns
    ]
    key = ", ".join(quote_cql(one.name) for one in table.columns_with_roles(PARTITION))
    rest = "".join(f", {quote_cql(one.name)}" for one in table.columns_with_roles(CLUSTERING))
    return f"create table {quote_cql(table.name)} ({', '.join(columns)}, primary key (({key}){rest}))"


def check_table(table: WideTable, shape: Shape, schema: Any, numbers: AbstractSet[str] = frozenset()) -> None:
    """Check that an existing table can take these rows.

    Args:
        table: The existing table.
        shape: The roles of the columns.
        schema: The Arrow schema of the rows.
        numbers: Text columns that hold numbers; a text column of the table takes them, too.

    Raises:
        WideError: The keys, columns or types differ.
    """
    for word, given, role in (("--key", shape.key, PARTITION), ("--cluster", shape.cluster, CLUSTERING)):
        has = tuple(one.name for one in table.columns_with_roles(role))
        if given and given != has:
            raise WideError(
                f"the table has {', '.join(has) or 'none'}, not {', '.join(given)}",
                where=f"{table.name}, {word}",
                next_step="name the columns that the table has",
            )
    names = set(schema.names)
    lost = next((one for one in schema.names if table.column(one) is None), None)
    lost = lost or next((one.name for one in table.key if one.name not in names), None)
    if lost is not None:
        raise WideError(
            f"column {lost!r} is not in both the table and the rows",
            where=table.name,
            next_step=f"give the query's columns the names of the table's columns: "
            f"{', '.join(one.name for one in table.columns)}",
        )
    for field in schema:
        column = table.column(field.name)
        ways = {_wanted_type(field, numbers), cql_type(str(field.type))}
        if column is not None and not any(_takes(column.kind.name, wanted) for wanted in ways):
            raise WideError(
                f"is of type {column.kind.name} in the table, but {field.type} in the rows",
                where=f"{table.name}, column {field.name}",
                next_step="cast the column in the query",
            )


_TAKES = {
    "smallint": {"tinyint"},
    "int": {"tinyint", "smallint"},
    "bigint": {"tinyint", "smallint", "int"},
    "varint": {"tinyint", "smallint", "int", "bigint"},
    "decimal": {"tinyint", "smallint", "int", "bigint"},
    "double": {"float"},
    "uuid": {"text"},
    "timeuuid": {"text"},
    "inet": {"text"},
}


def _takes(there: str, wanted: str) -> bool:
    return there in (wanted, "varchar" if wanted == "text" else wanted) or wanted in _TAKES.get(there, set())


def check_rows(files: Sequence[Path], table: WideTable, schema: Any) -> int:
    """Check all rows and return their number.

    Raises:
        WideError: Cassandra would keep fewer rows, or other values.
    """
    with file_connection() as duck:
        source = "read_parquet(?)"
        given = [[str(one) for one in files]]

        def count(what: str, rest: str = "") -> int:
            row = duck.execute(f"select {what} from {source} {rest}", given).fetchone()  # noqa: S608
            return int(row[0] or 0) if row else 0

        keys = [quote_cql(one.name) for one in table.columns_with_roles(PARTITION)]
        cluster = [quote_cql(one.name) for one in table.columns_with_roles(CLUSTERING)]
        empty = count("count(*)", "where " + " or ".join(f"{one} is null" for one in keys))
        _refuse(empty, "have no value in the partition key", "leave these rows out of the query")
        if cluster:
            others = [quote_cql(one.name) for one in table.columns_with_roles(REGULAR) if one.name in schema.names]
            lone = " and ".join(f"{one} is null" for one in (*cluster, *others))
            half = " or ".join(f"{one} is null" for one in cluster)
            _refuse(
                count("count(*)", f"where ({half}) and not ({lone})"),
                "have no value in a clustering column",
                "leave these rows out; a parent without children may have NULL in all of a child's columns",
            )
        doubled = f"select 1 from {source} group by {', '.join([*keys, *cluster])} having count(*) > 1"  # noqa: S608
        row = duck.execute(f"select count(*) from ({doubled})", given).fetchone()  # noqa: S608
        _refuse(
            row[0] if row else 0,
            "keys occur more than once: Cassandra would keep only one row per key",
            "name more columns with --cluster",
            what="",
        )
        for column in table.columns_with_roles(STATIC):
            if column.name in schema.names:
                name = quote_cql(column.name)
                several = f"select 1 from {source} group by {', '.join(keys)} having count(distinct {name}) > 1"  # noqa: S608
                row = duck.execute(f"select count(*) from ({several})", given).fetchone()  # noqa: S608
                _refuse(
                    row[0] if row else 0,
                    f"partitions have several values of {column.name}, but a static column can hold only one",
                    "leave the column out of --static, because its values differ by row",
                    what="",
                )
        for field in schema:
            if str(field.type).startswith("timestamp"):
                name = quote_cql(field.name)
                fine = count("count(*)", f"where epoch_us({name}) % 1000 <> 0")
                _refuse(
                    fine,
                    f"have microseconds in {field.name}, but Cassandra stores only milliseconds",
                    f"use date_trunc('milliseconds', {field.name}) in the query, or cast the column to text",
                )
        return count("count(*)")


def _refuse(count: int, said: str, next_step: str, what: str = "rows ") -> None:
    if count:
        raise WideError(f"{count:,} {what}{said}; nothing was written", where="the rows", next_step=next_step)
