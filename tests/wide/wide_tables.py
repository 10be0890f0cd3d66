"""A wide table for tests that need no Cassandra: customers with their orders."""

from __future__ import annotations

from dbdyno.wide.catalog import CLUSTERING, PARTITION, REGULAR, STATIC, WideColumn, WideTable
from dbdyno.wide.mapping import WideMap, map_of
from dbdyno.wide.types import Kind, parse

FIELDS = {"address": [("street", "text"), ("zip", "int")]}


def kind(text: str) -> Kind:
    return parse(text, FIELDS)


def table(*columns: tuple[str, str, str], indexed: tuple[str, ...] = ()) -> WideTable:
    made = tuple(WideColumn(name, role, kind(text)) for name, role, text in columns)
    return WideTable("orders_by_customer", made, frozenset(indexed))


ORDERS = table(
    ("customer_id", PARTITION, "int"),
    ("order_date", CLUSTERING, "date"),
    ("order_no", CLUSTERING, "int"),
    ("name", STATIC, "text"),
    ("home", STATIC, "frozen<address>"),
    ("phones", STATIC, "set<text>"),
    ("amount", REGULAR, "decimal"),
    ("rate", REGULAR, "double"),
    ("status", REGULAR, "text"),
    ("tags", REGULAR, "list<text>"),
    ("attrs", REGULAR, "map<text, int>"),
    indexed=("status",),
)


def shop() -> WideMap:
    """Return the map of this table, under the names `orders` and `customers`."""
    return map_of("shop", {ORDERS.name: ORDERS}, {ORDERS.name: ("orders", "customers")})
