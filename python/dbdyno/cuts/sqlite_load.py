"""Process of a load on SQLite: consecutive commits, each announced on stdout before and acknowledged after.

    python -m dbdyno.cuts.sqlite_load PATH PRAGMAS FIRST   -->   t 17 / a 17 / t 18 / ...

It ends with an error when the power fails. Everything follows from its arguments, so a load can be replayed.
"""

from __future__ import annotations

import json
import sqlite3
import sys

from dbdyno.cuts.ledger import payload_of

TABLES = (
    "create table counts (session integer primary key, n integer not null)",
    "create table rows (number integer primary key, session integer not null references counts, payload text not null)",
    "create index rows_payload on rows (payload)",
    "insert into counts values (0, 0)",
)


def open_database(path: str, pragmas: dict[str, str]) -> sqlite3.Connection:
    """Open a database with pragmas, and without implicit transactions by Python.

    Raises:
        sqlite3.Error: the database or a pragma is refused.
    """
    connection = sqlite3.connect(path, isolation_level=None, timeout=5)
    for name, value in pragmas.items():
        if not (name.isidentifier() and value.replace("-", "").isalnum()):
            raise sqlite3.OperationalError(f"there is no such pragma: {name} = {value}")
        connection.execute(f"pragma {name} = {value}").fetchall()
    connection.execute("pragma foreign_keys = on").fetchall()
    connection.execute("pragma wal_autocheckpoint = 20").fetchall()
    return connection


def main(path: str, pragmas: str, first: str) -> None:
    """Commit until the database fails."""
    connection = open_database(path, json.loads(pragmas))
    number = int(first)
    while True:
        sys.stdout.write(f"t {number}\n")
        sys.stdout.flush()
        connection.execute("begin immediate")
        connection.execute("insert into rows values (?, 0, ?)", (number, payload_of(number)))
        connection.execute("update counts set n = n + 1 where session = 0")
        connection.execute("commit")
        sys.stdout.write(f"a {number}\n")
        sys.stdout.flush()
        number += 1


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except sqlite3.Error:
        sys.exit(1)
