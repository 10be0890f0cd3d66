"""The Cassandra of the tests is a real one."""

from __future__ import annotations

import pytest
from wide_lab import SHOP, WideLab


@pytest.mark.soak
def test_the_node_takes_a_table_with_static_columns_and_gives_its_rows(wide_lab: WideLab) -> None:
    wide_lab.run(SHOP)
    wide_lab.run("insert into orders_by_customer (customer_id, name) values (1, 'Ada')")
    wide_lab.run("insert into orders_by_customer (customer_id, order_date, order_no) values (1, '2026-01-01', 7)")
    assert wide_lab.rows("select customer_id, name, order_no from orders_by_customer") == [(1, "Ada", 7)]
