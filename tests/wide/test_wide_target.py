"""Checks by a loader before its first row, because Cassandra would accept duplicate rows and keep the last."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from wide_tables import ORDERS

from dbdyno.base.errors import WideError
from dbdyno.wide import load
from dbdyno.wide.address import address
from dbdyno.wide.load import LoadState, begin_load
from dbdyno.wide.static_columns import new_table
from dbdyno.wide.target import Shape, check_rows, check_table, create_cql, plain_numbers, table_for_rows

SHAPE = Shape("orders", ("id",), ("no",), ("name",))
SCHEMA = pa.schema(
    [
        ("no", pa.int32()),
        ("id", pa.int64()),
        ("name", pa.string()),
        ("amount", pa.decimal128(12, 2)),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
AT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
GOOD = [(1, 1, "Ada", Decimal("2.50"), AT), (2, 1, "Ada", None, None), (None, 2, "Bob", None, None)]


def file(tmp_path: Path, rows: list[tuple[Any, ...]]) -> Path:
    path = tmp_path / "part-00000.parquet"
    columns = [list(one) for one in zip(*rows, strict=True)]
    parquet.write_table(
        pa.table([pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA),
        path,
    )
    return path


def test_the_table_that_rows_need_is_written_in_cql() -> None:
    assert create_cql(table_for_rows(SHAPE, SCHEMA)) == (
        'create table "orders" ("id" bigint, "no" int, "name" text static, "amount" decimal, "at" timestamp,'
        ' primary key (("id"), "no"))'
    )


def test_good_rows_pass_and_a_parent_may_be_without_children(tmp_path: Path) -> None:
    assert check_rows([file(tmp_path, GOOD)], table_for_rows(SHAPE, SCHEMA), SCHEMA) == 3


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ((1, None, "x", None, None), "1 rows have no value in the partition key"),
        ((None, 3, "x", Decimal(1), None), "1 rows have no value in a clustering column"),
        ((2, 1, "Ada", None, None), "1 keys occur more than once"),
        ((9, 1, "Eve", None, None), "1 partitions have several values of name"),
        ((9, 4, "x", None, AT + dt.timedelta(microseconds=1)), "1 rows have microseconds in at"),
    ],
)
def test_rows_that_would_be_lost_or_changed_are_refused(tmp_path: Path, bad: tuple[Any, ...], said: str) -> None:
    with pytest.raises(WideError) as error:
        check_rows([file(tmp_path, [*GOOD, bad])], table_for_rows(SHAPE, SCHEMA), SCHEMA)
    assert said in str(error.value)
    assert "nothing was written" in str(error.value)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (Shape("t", ("nope",), (), ()), "the rows have no column 'nope'"),
        (Shape("t", (), ("no",), ()), "does not name a partition key"),
        (Shape("t", ("id",), ("id",), ()), "column id is named in two of"),
    ],
)
def test_a_key_that_is_none_is_refused(shape: Shape, said: str) -> None:
    with pytest.raises(WideError, match=said):
        table_for_rows(shape, SCHEMA)


def test_a_type_that_cassandra_has_not_is_named() -> None:
    with pytest.raises(WideError, match="column span: is of type duration"):
        table_for_rows(Shape("t", ("id",), (), ()), pa.schema([("id", pa.int32()), ("span", pa.duration("s"))]))


def test_a_table_that_is_there_must_take_the_rows() -> None:
    shape = Shape("orders_by_customer", ("customer_id",), ("order_date", "order_no"), ())
    given = [("customer_id", pa.int16()), ("order_date", pa.date32()), ("order_no", pa.int32())]
    check_table(ORDERS, shape, pa.schema([*given, ("amount", pa.int32())]))
    with pytest.raises(WideError, match="is of type decimal in the table, but string in the rows"):
        check_table(ORDERS, shape, pa.schema([*given, ("amount", pa.string())]))
    with pytest.raises(WideError, match="column 'order_no' is not in both the table and the rows"):
        check_table(ORDERS, shape, pa.schema(given[:2]))
    with pytest.raises(WideError, match="the table has customer_id, not order_no"):
        check_table(ORDERS, Shape("orders_by_customer", ("order_no",), (), ()), pa.schema(given))


def test_numbers_without_limits_are_numbers_where_all_fit(tmp_path: Path) -> None:
    """They come as text; as text no sum could be asked for."""
    numeric = {"dbdyno.pg_type": "numeric"}
    fields = [
        ("id", {"dbdyno.pg_type": "numeric"}),
        *((name, numeric) for name in ("fits", "nan", "long")),
        ("text", {}),
    ]
    schema = pa.schema([pa.field(name, pa.string(), metadata=said) for name, said in fields])
    shape, path = Shape("t", ("id",), (), ()), tmp_path / "part-00000.parquet"
    rows = [["1", "-0.5", "1", "1.5", "1"], ["2", "7.0000000000000", "NaN", "0.12345678901", "2"], ["3"] + [None] * 4]
    parquet.write_table(pa.table([pa.array(list(one)) for one in zip(*rows, strict=True)], schema=schema), path)
    found = plain_numbers([path], schema, shape)
    assert found == {"fits"}
    made = table_for_rows(shape, schema, found)
    assert [one.kind.name for one in made.columns] == ["text", "decimal", "text", "text", "text"]
    check_table(made, shape, schema, found)
    check_table(table_for_rows(shape, schema), shape, schema, found)


SEVERAL = [
    (1, 1, "Ada", Decimal("2.50"), AT),
    (2, 1, "Ada", Decimal("3.50"), None),
    (1, 2, "Bob", None, None),
    (None, 3, "Eve", None, None),
]


def test_columns_with_one_value_in_every_partition_are_proposed_as_static(tmp_path: Path) -> None:
    made, advice = new_table([file(tmp_path, SEVERAL)], replace(SHAPE, static=()), SCHEMA, frozenset())
    assert advice == (
        "name has one value in every partition (1 of 3 have several rows);"
        " --static name in a new table stores it once per partition"
    )
    assert not made.columns_with_roles("static")
    made, advice = new_table([file(tmp_path, SEVERAL)], replace(SHAPE, static=("auto",)), SCHEMA, frozenset())
    assert [one.name for one in made.columns_with_roles("static")] == ["name"] and advice.endswith(": static")


@pytest.mark.parametrize(
    ("rows", "shape"),
    [
        ([(1, 1, "Ada", None, None), (2, 1, None, None, None)], SHAPE),  # NULL beside a value: both rows would have it
        ([(1, 1, "Ada", None, None), (1, 2, "Bob", None, None)], SHAPE),  # no partition has several rows
        (SEVERAL, replace(SHAPE, cluster=())),  # Cassandra has no static columns without clustering columns
    ],
)
def test_no_column_is_proposed_that_the_rows_do_not_show_to_be_static(
    tmp_path: Path, rows: list[tuple[Any, ...]], shape: Shape
) -> None:
    for static in ((), ("auto",)):
        made, advice = new_table([file(tmp_path, rows)], replace(shape, static=static), SCHEMA, frozenset())
        assert not made.columns_with_roles("static") and ("none is static" in advice) is bool(static)


def test_a_column_that_is_named_auto_is_a_column(tmp_path: Path) -> None:
    named = SCHEMA.set(2, pa.field("auto", pa.string()))
    made, advice = new_table([file(tmp_path, SEVERAL)], replace(SHAPE, static=("auto",)), named, frozenset())
    assert [one.name for one in made.columns_with_roles("static")] == ["auto"] and not advice


def test_rows_of_a_partition_go_together_and_a_resume_begins_behind_what_is_acknowledged(tmp_path: Path) -> None:
    rows: list[tuple[Any, ...]] = [(no, id, f"n{id}", None, None) for id in range(4) for no in range(30 * id + 1)]
    path, table = file(tmp_path, rows), table_for_rows(SHAPE, SCHEMA)
    groups = list(load._groups([path], table, 0))
    assert sum(len(group) for group, _ in groups) == len(rows) == groups[-1][1]
    assert all(len({row["id"] for row in group}) == 1 and len(group) <= load.BATCH_ROWS for group, _ in groups)
    for skip in (1, 40, len(rows)):
        left = [(row["id"], row["no"]) for group, _ in load._groups([path], table, skip) for row in group]
        assert left == [(row[1], row[0]) for row in rows[skip:]]


def test_a_load_that_somebody_else_planned_is_not_carried_out(tmp_path: Path) -> None:
    begin_load(tmp_path, address("cassandra://h/shop"), SHAPE, create=True)
    assert LoadState.open(tmp_path).shape == SHAPE
    place = tmp_path / load.STATE
    place.write_text(place.read_text().replace('"orders"', '"accounts"'))
    with pytest.raises(WideError, match="this load was not started by this user"):
        LoadState.open(tmp_path)
