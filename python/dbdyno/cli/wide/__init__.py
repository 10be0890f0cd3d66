"""`dbdyno wide`: wide tables of Cassandra as SQL tables, one file per command."""

from __future__ import annotations

from dbdyno.cli.main import LazyGroup

command = LazyGroup(
    "wide",
    package=__name__,
    rows={
        "map": "Write the map of a keyspace: its tables as SQL tables.",
        "check": "Check that the keys of a map fit the data.",
        "sql": "Run SQL on the tables of a map.",
    },
    help="""Query wide tables of Cassandra with SQL.

    Each wide table is a parent (partition key, static columns) and a child (the whole key and the other columns);
    collections are further children.

    \b
    dbdyno wide map cassandra://host/shop > map.toml
    dbdyno wide sql "select ..." --map map.toml --target cassandra://host/shop
    """,
)
