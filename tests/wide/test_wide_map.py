"""The map: its tables for a keyspace, writing and reading its file, and bad files with the place of the error."""

from __future__ import annotations

from pathlib import Path

import pytest
from wide_tables import ORDERS, kind, shop, table

from dbdyno.base.errors import WideError
from dbdyno.wide.address import address
from dbdyno.wide.file import read, to_toml
from dbdyno.wide.mapping import check, map_of

MAP = to_toml(shop())


def test_static_columns_are_split_off_to_the_parent() -> None:
    found = shop()
    parent, child = found.relation("customers"), found.relation("ORDERS")
    assert parent is not None
    assert child is not None
    assert [one.of for one in parent.columns] == ["customer_id", "name"]
    assert [one.of for one in child.columns] == ["customer_id", "order_date", "order_no", "amount", "rate", "status"]
    assert child.foreign_key is not None
    assert (child.foreign_key.columns, child.foreign_key.references) == (("customer_id",), "customers")


def test_collections_and_types_of_the_users_own_become_children_of_what_they_belong_to() -> None:
    found = {one.name: one for one in shop().relations}
    assert [one.name for one in found["orders_tags"].columns][-2:] == ["position", "value"]
    assert found["orders_tags"].primary_key.columns == ("customer_id", "order_date", "order_no", "position")
    assert [one.of for one in found["customers_home"].columns] == ["customer_id", "@value.street", "@value.zip"]
    assert found["customers_phones"].primary_key.columns == ("customer_id", "value")
    assert found["orders_attrs"].foreign_key is not None
    assert found["orders_attrs"].foreign_key.references == "orders"


def test_a_table_without_clustering_columns_is_one_relation() -> None:
    plain = table(("id", "partition_key", "uuid"), ("v", "regular", "blob"))
    (one,) = map_of("shop", {plain.name: plain}, {}).relations
    assert (one.rows, [column.sql for column in one.columns]) == ("parent", ["varchar", "blob"])


def test_a_type_of_an_odd_form_is_kept_as_text() -> None:
    assert kind("vector<float, 3>").sql == "varchar"
    assert kind("'org.apache.cassandra.db.marshal.X'(").sql == "varchar"
    assert kind("frozen<map<text, frozen<list<address>>>>").parts[1].parts[0].fields == ("street", "zip")


def test_the_file_says_the_same_again(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(MAP)
    assert check(read(tmp_path / "map.toml"), {ORDERS.name: ORDERS}, "map.toml") == shop()


def test_names_and_types_may_be_edited(tmp_path: Path) -> None:
    text = MAP.replace('\namount = "amount"', '\n"Total €" = { of = "amount", type = "decimal(38,2)" }')
    (tmp_path / "map.toml").write_text(text)
    found = check(read(tmp_path / "map.toml"), {ORDERS.name: ORDERS}, "map.toml")
    orders = found.relation("orders")
    assert orders is not None
    column = orders.column_of_source("amount")
    assert column is not None
    assert (column.name, column.sql) == ("Total €", "decimal(38,2)")
    assert '"Total €" = { of = "amount", type = "decimal(38,2)" }' in to_toml(found)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('keyspace = "shop"', "keyspace = 3", "keyspace: must be text, found 3"),
        ("version = 1", "version = 2", "has no version = 1"),
        ('name = "name"', 'name = "nome"', "table.customers.columns.name: 'nome' is not a column of a parent"),
        ('rows = "parent"', 'rows = "mother"', "table.customers.rows: is 'mother', expected parent, child or element"),
        ('of = "orders_by_customer"', 'of = "orders"', "table.customers.of: there is no table orders in shop"),
        ('element = "home"', 'element = "name"', "table.customers_home.element: 'name' is neither a collection"),
        ('columns = ["customer_id"] }', 'columns = ["id"] }', "table.customers.primary_key: has no column 'id'"),
        ('references = "customers"', 'references = "clients"', "foreign_key: no table 'clients' is in the map"),
        ("[table.orders]", "[table.ORDERS]\n[table.orders]", "table.ORDERS"),
        ("[table.orders.columns]", "[table.orders.columns", "is not valid TOML"),
        ('amount = "amount"', 'amount = { of = "amount", type = "money" }', "columns.amount: expected { of"),
        ('amount = "amount"', 'amount = { of = "amount", type = "decimal(40,2)" }', "expected a decimal type"),
        ('amount = "amount"', 'AMOUNT = "amount"\namount = "amount"', "two columns are named 'AMOUNT'"),
        ('rows = "child"', 'rows = "child"\nsize = 3', "table.orders: has the unknown key 'size'"),
    ],
)
def test_a_bad_map_is_refused_with_its_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in MAP
    path = tmp_path / "map.toml"
    path.write_text(MAP.replace(old, new, 1))
    with pytest.raises(WideError) as error:
        check(read(path), {ORDERS.name: ORDERS}, str(path))
    assert said in str(error.value)
    assert str(path) in str(error.value)


def test_a_map_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WideError, match="cannot be read"):
        read(tmp_path / "none.toml")


def test_a_name_given_twice_is_an_error() -> None:
    with pytest.raises(WideError, match="two tables are named orders"):
        map_of("shop", {ORDERS.name: ORDERS}, {ORDERS.name: ("orders", "Orders")})
    with pytest.raises(WideError, match="there is no table order"):
        map_of("shop", {ORDERS.name: ORDERS}, {"order": ("orders", "customers")})


def test_an_address_is_read_and_shown_without_its_password() -> None:
    found = address("cassandra://me:p%40ss@a,b:19042/shop")
    assert (found.hosts, found.port, found.keyspace, found.password) == (("a", "b"), 19042, "shop", "p@ss")
    assert found.safe == "cassandra://me@a,b:19042/shop"
    assert "ss" not in repr(found).replace("Address", "").replace("cassandra", "")


@pytest.mark.parametrize(
    "dsn", ["cassandra://h", "cassandra:///shop", "cassandra://h:x/shop", "postgresql://h/x", "cassandra://u:s3/c@h/k"]
)
def test_an_address_that_cannot_be_read_is_refused_without_being_shown(dsn: str) -> None:
    with pytest.raises(WideError) as error:
        address(dsn)
    assert "s3" not in str(error.value)
