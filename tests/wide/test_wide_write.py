"""Values of SQL as Cassandra's driver takes them."""

from __future__ import annotations

from decimal import Decimal

from dbdyno.wide.types import Kind
from dbdyno.wide.write import bound_value


def test_a_number_for_a_column_of_text_is_cast_as_sql_does() -> None:
    """`set amount = 0` on a column of text ended with "'int' object has no attribute 'encode'"."""
    assert bound_value(Kind("text"), 0) == "0"
    assert bound_value(Kind("text"), Decimal("1.50")) == "1.50"
    assert bound_value(Kind("text"), "x") == "x"
    assert bound_value(Kind("text"), None) is None
    assert bound_value(Kind("int"), Decimal(3)) == 3
