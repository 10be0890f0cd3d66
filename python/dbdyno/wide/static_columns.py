"""Columns that can be static in a new wide table, found in the rows: each has one value in every partition.

Cassandra stores a static column once per partition instead of once per row. Whether a column always will have one value
is for the user to know: rows can only show that it has one now, so the columns are proposed, and are used only with
`--static auto`.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dbdyno.evidence.memory import file_connection
from dbdyno.wide.catalog import WideTable
from dbdyno.wide.pushdown import quote_cql
from dbdyno.wide.target import Shape, table_for_rows

AUTO = "auto"


@dataclass(frozen=True)
class StaticColumns:
    """Columns with one value in every partition, the number of partitions, and how many of these have several rows."""

    names: tuple[str, ...]
    partitions: int
    several: int


def new_table(files: Sequence[Path], shape: Shape, schema: Any, numbers: AbstractSet[str]) -> tuple[WideTable, str]:
    """Return the table to create for the rows, and advice on its static columns or an empty string.

    Args:
        files: The files with the rows.
        shape: The roles of the columns; static columns may be `auto`.
        schema: The Arrow schema of the rows.
        numbers: Text columns that hold numbers.

    Raises:
        WideError: A column is missing, has two roles, or has a type that Cassandra does not have.
    """
    auto = shape.static == (AUTO,) and AUTO not in schema.names
    made = table_for_rows(replace(shape, static=()) if auto else shape, schema, numbers)
    if shape.static and not auto:
        return made, ""
    static = find_static_columns(files, shape, schema)
    if not static.names:
        return made, "no column has a single value in every partition with several rows: none is static" if auto else ""
    names, verb = ", ".join(static.names), "has" if len(static.names) == 1 else "have"
    rows = f"{static.several:,} of {static.partitions:,} have several rows"
    fact = f"{names} {verb} one value in every partition ({rows})"
    if not auto:
        return made, f"{fact}; --static {','.join(static.names)} in a new table stores it once per partition"
    return table_for_rows(replace(shape, static=static.names), schema, numbers), f"{fact}: static"


def find_static_columns(files: Sequence[Path], shape: Shape, schema: Any) -> StaticColumns:
    """Return the columns with one value in every partition.

    There are none if the table has no clustering columns, because Cassandra then allows no static column, or if no
    partition has several rows. A column that is the same in all rows is left out: it shows nothing about partitions.
    """
    names = [one for one in schema.names if one not in (*shape.key, *shape.cluster)]
    if not shape.cluster or not names:
        return StaticColumns((), 0, 0)
    keys = ", ".join(map(quote_cql, shape.key))
    one_value = "min({0}) is not distinct from max({0}) and count({0}) in (0, count(*))"
    tests = ", ".join(f"{one_value.format(quote_cql(name))} as s{at}" for at, name in enumerate(names))
    values = ", ".join(f"min({quote_cql(name)}) as v{at}" for at, name in enumerate(names))
    groups = f"select count(*) as n, {tests}, {values} from read_parquet(?) group by {keys}"  # noqa: S608
    all_of = ", ".join(f"bool_and(s{at}) and min(v{at}) < max(v{at})" for at in range(len(names)))
    with file_connection() as duck:
        query = f"select count(*), count(*) filter (n > 1), {all_of} from ({groups})"  # noqa: S608
        row = duck.execute(query, [[str(one) for one in files]]).fetchone()
    if row is None or not row[1]:
        return StaticColumns((), row[0] if row else 0, 0)
    found = tuple(name for name, is_static in zip(names, row[2:], strict=True) if is_static)
    return StaticColumns(found, row[0], row[1])
