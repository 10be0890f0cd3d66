"""A keyspace for a test, and the output of commands on it."""

from __future__ import annotations

from typing import Any, Self

from cassandra_server import CassandraServer

REPLICATED = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
SHOP = """
create type address (street text, zip int);
create table orders_by_customer (
  customer_id int, order_date date, order_no int,
  name text static, home frozen<address> static, phones set<text> static,
  amount decimal, paid boolean, tags list<text>, attrs map<text, int>,
  primary key (customer_id, order_date, order_no)
) with clustering order by (order_date desc, order_no asc);
"""


class WideLab:
    """A keyspace that is dropped at the end."""

    def __init__(self, node: CassandraServer, keyspace: str) -> None:
        self.node, self.keyspace = node, keyspace
        self.dsn = node.dsn(keyspace)
        self.session: Any = node.connect()

    def __enter__(self) -> Self:
        self.session.execute(f"create keyspace {self.keyspace} with replication = {REPLICATED}")
        self.session.set_keyspace(self.keyspace)
        return self

    def __exit__(self, *_: object) -> None:
        self.session.execute(f"drop keyspace {self.keyspace}")
        self.session.cluster.shutdown()

    def again(self) -> None:
        """Connect again, after the node was restarted."""
        self.session.cluster.shutdown()
        self.session = self.node.connect(self.keyspace)

    def run(self, text: str) -> None:
        """Execute CQL statements that are separated by semicolons."""
        for one in text.split(";"):
            if one.strip():
                self.session.execute(one)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        return [tuple(row) for row in self.session.execute(text)]
