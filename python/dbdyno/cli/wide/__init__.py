"""`dbdyno wide`: wide tables of Cassandra as SQL tables, one file per command."""

from __future__ import annotations

import click

from dbdyno.cli.main import LazyGroup

ROWS = {
    "map": ("dbdyno.cli.wide.map", "Write the map of a keyspace: its tables as SQL tables."),
    "check": ("dbdyno.cli.wide.check", "Check that the keys of a map fit the data."),
    "sql": ("dbdyno.cli.wide.sql", "Run SQL on the tables of a map."),
}


@click.group("wide", cls=LazyGroup, rows=ROWS)
def command() -> None:
    """Query wide tables of Cassandra with SQL.

    Each wide table is a parent (partition key, static columns) and a child (the whole key and the other columns);
    collections are further children.

    \b
    dbdyno wide map cassandra://host/shop > map.toml
    dbdyno wide sql "select ..." --map map.toml --target cassandra://host/shop
    """
