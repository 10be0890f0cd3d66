"""Check whether an instance accepts each of the collector's queries, run with `rownum < 1` so that no row is read.

The queries follow the public reference and were never run against an instance by dbdyno's developers. Users with an
instance learn here, before the first snapshot, what it refuses and which grant is missing.
"""

from __future__ import annotations

from typing import Any

from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.snapshot.engines.oracle.connection import address, connect, driver, first_line
from dbdyno.snapshot.engines.oracle.scripts import LICENSED, script, script_names

TIMEOUT_MS = 10_000


def check(dsn: str) -> list[TableRow]:
    """Return a row per script: whether the instance accepts it, its answer, and the grants it needs.

    Licensed views are queried only if the connection string names them.

    Raises:
        SnapshotError: The instance does not answer.
    """
    where = address(dsn)
    asked = [n for n in script_names() if not n.startswith(LICENSED) or n.removeprefix(LICENSED) in where.licensed]
    connection = connect(where, TIMEOUT_MS)
    try:
        return [_row(connection, name) for name in asked]
    finally:
        connection.close()


def empty_query(name: str) -> tuple[str, JsonObject]:
    """Return a script's query, wrapped so that it returns no row, and the parameters of that query."""
    sql = script(name).sql.strip().replace(":ids", ":i0")
    binds = {bind: value for bind, value in (("i0", "-"), ("since_us", 0)) if f":{bind}" in sql}
    return f"select * from (\n{sql}\n) where rownum < 1", binds


def _row(connection: Any, name: str) -> JsonObject:
    sql, binds = empty_query(name)
    row = {"query": name, "answer": "ok", "grants": script(name).grants}
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql, binds)
            given = [str(column[0]).lower() for column in cursor.description or ()]
            expected = [column.name for column in script(name).columns]
            if given and given != expected:
                row["answer"] = f"other columns: {', '.join(given)}"
    except driver().Error as error:
        row["answer"] = first_line(error)
    return row
