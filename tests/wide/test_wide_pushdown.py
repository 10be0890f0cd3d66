"""Conditions that are pushed down to Cassandra by its own rules, and never more of a query than is safe."""

from __future__ import annotations

import datetime as dt
import itertools

import pytest
from wide_tables import ORDERS, kind, shop

from dbdyno.base.errors import WideError
from dbdyno.wide.literals import as_cql
from dbdyno.wide.pushdown import Scan, plan_scan
from dbdyno.wide.query_analysis import analyse_query
from dbdyno.wide.scan import HIGH, LOW, split_ranges
from dbdyno.wide.write import translate_change


def scans(text: str, *, filtering: bool = False) -> list[Scan]:
    asked = analyse_query(text, shop())
    return [plan_scan(relation, ORDERS, wanted, filtering=filtering) for relation, wanted in asked.scans.values()]


def only(text: str, *, filtering: bool = False) -> Scan:
    (scan,) = scans(text, filtering=filtering)
    return scan


def where(scan: Scan) -> str:
    return scan.statement.cql.partition(" where ")[2].replace('"', "")


TOKENS = "token(customer_id) > ? and token(customer_id) <= ?"


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("select * from orders", TOKENS),
        ("select * from orders where customer_id = 1", "customer_id = ?"),
        (
            "select * from orders where customer_id = 1 and order_date = '2026-01-02' and order_no < 5",
            "customer_id = ? and order_date = ? and order_no < ?",
        ),
        ("select * from orders where customer_id = 1 and order_no = 5", "customer_id = ?"),
        (
            "select * from orders where customer_id = 1 and order_date > '2026-01-02' and order_no = 5",
            "customer_id = ? and order_date > ?",
        ),
        (
            "select * from orders where customer_id = 1 and order_date between '2026-01-02' and '2026-02-02'",
            "customer_id = ? and order_date >= ? and order_date <= ?",
        ),
        (
            "select * from orders where customer_id = 1 and order_date in (date '2026-01-02', date '2026-01-03')",
            "customer_id = ? and order_date in ?",
        ),
        ("select * from orders where order_date = '2026-01-02'", TOKENS),
        ("select * from orders where customer_id = 1 or order_no = 2", TOKENS),
        ("select * from orders where not customer_id = 1", TOKENS),
        ("select * from orders where customer_id + 0 = 1", TOKENS),
        ("select * from orders where customer_id > 1", TOKENS),
        ("select * from orders where status = 'open'", f"{TOKENS} and status = ?"),
        ("select * from orders where customer_id = 1 and status = 'open'", "customer_id = ? and status = ?"),
        ("select * from customers where customer_id = 1 and name = 'x'", "customer_id = ?"),
        ("select * from orders where customer_id = 3000000000", TOKENS),
        ("select * from orders where customer_id = 1.5", TOKENS),
        ("select * from orders where customer_id = '1'", TOKENS),
        ("select * from orders where customer_id = 1 and order_date = null", "customer_id = ?"),
        ("select * from orders where customer_id is null", TOKENS),
        ("select * from orders tablesample 10 percent where customer_id = 1", TOKENS),
    ],
)
def test_what_is_pushed_follows_the_rules(text: str, asked: str) -> None:
    assert where(only(text)) == asked
    assert "filtering" not in only(text).statement.cql


def test_the_tightest_end_of_a_range_is_pushed() -> None:
    scan = only(
        "select * from orders where customer_id = 1 and order_date > '2026-01-02' and order_date >= '2026-03-01'"
    )
    assert where(scan) == "customer_id = ? and order_date >= ?"
    assert scan.statement.values == (dt.date(2026, 3, 1),)


def test_partitions_are_those_that_all_conditions_allow() -> None:
    scan = only("select * from orders where customer_id in (1, 2, 2, 3) and customer_id in (3, 2, 9)")
    assert scan.statement.partitions == ((2,), (3,))
    assert only("select * from orders where customer_id = 1 and customer_id = 2").statement.partitions == ()


def test_a_constant_is_carried_over_a_join() -> None:
    for text in (
        "select * from customers c join orders o on o.customer_id = c.customer_id where c.customer_id = 7",
        "select * from customers c, orders o where o.customer_id = c.customer_id and o.customer_id = 7",
        "select * from customers join orders using (customer_id) where customer_id = 7",
        "select * from customers c left join orders o using (customer_id) where c.customer_id = 7",
    ):
        assert [one.statement.partitions for one in scans(text)] == [((7,),), ((7,),)], text


def test_a_condition_is_not_taken_past_an_outer_join() -> None:
    left = "select * from customers c left join orders o on o.customer_id = c.customer_id and c.customer_id = 7"
    assert [one.statement.partitions for one in scans(left)] == [None, None]
    right = "select * from customers c right join orders o on c.customer_id = 7"
    assert [one.statement.partitions for one in scans(right)] == [None, None]
    full = "select * from customers c full join orders o using (customer_id) where customer_id = 7"
    assert [one.statement.partitions for one in scans(full)] == [None, None]
    asof = "select * from customers c asof join orders o on c.customer_id >= o.customer_id where o.customer_id = 7"
    assert [one.statement.partitions for one in scans(asof)] == [None, None]


def test_each_place_of_a_table_is_a_scan_of_its_own() -> None:
    text = "with a as (select * from orders where customer_id = 1) select * from a join orders b on b.customer_id = 2"
    assert [one.statement.partitions for one in scans(text)] == [((1,),), ((2,),)]
    inner = "select (select count(*) from orders o where o.customer_id = c.customer_id) from customers c"
    assert [one.relation.name for one in scans(inner)] == ["orders", "customers"] or len(scans(inner)) == 2


def test_a_name_of_the_questions_own_hides_a_table() -> None:
    assert scans("with orders as (select 1 as x) select x from orders") == []


def test_only_columns_that_are_used_are_read() -> None:
    assert [one.name for one in only("select sum(amount) from orders where customer_id = 1").columns] == [
        "customer_id",
        "amount",
    ]
    assert [one.name for one in only("select count(*) from orders").columns] == ["customer_id"]
    assert len(only("select orders from orders").columns) == 6


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("select name from customers limit 5", 5),
        ("select name from customers limit 5 offset 2", 7),
        ("select name from customers where customer_id in (1, 2) limit 5", 5),
        ("select name from customers where name = 'x' limit 5", None),
        ("select distinct name from customers limit 5", None),
        ("select count(*) from customers limit 5", None),
        ("select name from customers order by name limit 5", None),
        ("select name from customers where customer_id = 1 or name = 'x' limit 5", None),
        # A partition with static columns alone would take the place of a row.
        ("select order_no from orders limit 5", None),
    ],
)
def test_a_limit_is_pushed_where_nothing_is_left_to_filter(text: str, limit: int | None) -> None:
    scan = only(text)
    assert scan.limit == limit
    assert scan.statement.cql.endswith(f"limit {limit}") is (limit is not None)


def test_allow_filtering_comes_only_when_asked() -> None:
    text = "select * from orders where order_no = 3 and amount = 2.5"
    assert where(only(text)) == TOKENS
    assert where(only(text, filtering=True)) == f"{TOKENS} and amount = ? and order_no = ? allow filtering"


@pytest.mark.parametrize(
    ("cql", "value"),
    [
        ("double", 0),
        ("float", 0.1),
        ("int", True),
        ("tinyint", 128),
        ("timestamp", "2026-01-01T00:00:00.000001"),
        ("timestamp", "2026-01-01T00:00:00+02:00"),
        ("date", "yesterday"),
        ("uuid", "ABCDEF00-0000-0000-0000-000000000000"),
        ("inet", "127.0.0.1"),
        ("time", "10:00"),
        ("text", 5),
        ("ascii", "é"),
        ("text", "a\x00"),
    ],
)
def test_a_constant_that_might_mean_something_else_is_not_pushed(cql: str, value: object) -> None:
    assert as_cql(kind(cql), value) is None


def test_ranges_of_tokens_cover_all_and_overlap_nowhere() -> None:
    for edges, pieces in (([LOW, HIGH], 6), ([LOW, -5, 17, HIGH], 9), ([LOW, LOW + 1, HIGH], 4096)):
        found = split_ranges(edges, pieces)
        assert found[0][0] == LOW
        assert found[-1][1] == HIGH
        assert all(a[1] == b[0] and a[0] < a[1] for a, b in itertools.pairwise(found))
        assert len(found) >= pieces


def test_a_table_that_is_not_in_the_map_is_named() -> None:
    with pytest.raises(WideError, match="there is no table order_lines"):
        analyse_query("select * from order_lines", shop())
    with pytest.raises(WideError, match="line 1, column"):
        analyse_query("select * frm orders where", shop())


@pytest.mark.parametrize(
    ("text", "cql"),
    [
        (
            "insert into orders (customer_id, order_date, order_no) values (1, '2026-01-01', 2)",
            'insert into "orders_by_customer" ("customer_id", "order_date", "order_no") values (?, ?, ?)',
        ),
        (
            "update customers set name = 'x' where customer_id = 1",
            'update "orders_by_customer" set "name" = ? where "customer_id" = ?',
        ),
        (
            "delete from orders where amount > 3",
            'delete from "orders_by_customer" where "customer_id" = ? and "order_date" = ? and "order_no" = ?',
        ),
        (
            "insert into customers_phones (customer_id, value) values (1, 'x')",
            'update "orders_by_customer" set "phones" = "phones" + ? where "customer_id" = ?',
        ),
    ],
)
def test_changes_are_the_right_cql(text: str, cql: str) -> None:
    made = translate_change(text, shop())
    assert made.cql == cql
    assert made.promises


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("insert into orders (customer_id) values (1)", "needs its whole key; missing: order_date, order_no"),
        ("update orders set order_no = 3", "of the key, which Cassandra cannot change"),
        ("delete from customers where customer_id = 1", "also deletes all rows of"),
        ("delete from orders_tags", "are elements of"),
        ("update orders set nope = 3", "has no column 'nope'"),
        ("insert into customers_home (customer_id, street, zip) values (1, 'x', 2)", "is frozen"),
        ("delete from orders returning *", "RETURNING"),
        ("delete from nope", "expected a statement on one table of the map"),
    ],
)
def test_what_cassandra_cannot_do_is_refused(text: str, said: str) -> None:
    with pytest.raises(WideError) as error:
        translate_change(text, shop())
    assert said in str(error.value)


def test_conditions_are_told_as_sql_writes_them() -> None:
    scan = only("select * from orders where customer_id = 1 and order_date >= date '2026-01-02' and note = 'it''s'")
    told = "; ".join(map(str, (*scan.pushed, *scan.kept)))
    assert told.startswith("customer_id = 1; order_date >= '2026-01-02'"), told
