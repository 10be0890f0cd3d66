"""The short query for an unchanged file gives what the query that compares both of its readings gives."""

from __future__ import annotations

from typing import Any

import pytest

from dbdyno.evidence.memory import memory_connection
from dbdyno.snapshot.engines.view import Column
from dbdyno.snapshot.reading.difference import Sides, difference_sql

VALUES = {
    "key": ("BIGINT", "('1'), ('2'), (null), ('4')"),
    "text": ("VARCHAR", "('a'), (''), (null), ('b')"),
    "counter": ("BIGINT", "('7'), ('0'), (null), ('-3')"),
    "sum": ("DOUBLE", "('7.5'), ('nan'), (null), ('inf')"),
    "gauge": ("DOUBLE", "('7.5'), ('nan'), (null), ('-inf')"),
    "since": ("BIGINT", "('7'), ('0'), (null), ('8')"),
    "time": ("BIGINT", "('7'), ('0'), (null), ('8')"),
    "low": ("DOUBLE", "('7.5'), ('0'), (null), ('nan')"),
    "high": ("DOUBLE", "('7.5'), ('0'), (null), ('nan')"),
}
"""A type and four values of each kind of column."""


def answers(sides: Sides, before: str, after: str, *, scoped: bool) -> tuple[list[Any], str]:
    with memory_connection(in_order=True) as connection:
        connection.execute("create table scope_verdicts (part bigint, view text, value text, word text, why text)")
        parts = [f"(values {rows}) as {kind}({kind})" for kind, (_, rows) in VALUES.items()]
        shown = ", ".join(f"{kind}::{of} as {kind}" for kind, (of, _) in VALUES.items())
        for name in {before, after}:
            connection.execute(f"create table {name} as select {shown} from {' positional join '.join(parts)}")
        query = difference_sql(sides, before, after, scoped=scoped)
        found = connection.execute(f"from ({query}) order by key")
        return [column[:2] for column in found.description or []], str(found.fetchall())


@pytest.mark.parametrize("appearance", ["object", "entry", "fixed"])
def test_an_unchanged_file_has_the_difference_of_two_equal_ones(appearance: str):
    columns = tuple(Column(kind, kind, "count", of) for kind, (of, _) in VALUES.items())
    sides = Sides("view", columns, columns, appearance, None)
    compared = answers(sides, "a", "b", scoped=True)
    assert "nan" in compared[1]
    assert "None" in compared[1]
    assert answers(sides, "a", "a", scoped=False) == compared
    assert answers(sides, "a", "b", scoped=False) == compared


def test_a_view_that_began_to_have_a_column_is_compared_though_its_file_is_the_same():
    columns = tuple(Column(kind, kind, "count", of) for kind, (of, _) in VALUES.items())
    known = tuple(column for column in columns if column.name != "counter")
    found = difference_sql(Sides("view", known, columns, "object", None), "a", "a", scoped=False)
    assert "full join" in found
