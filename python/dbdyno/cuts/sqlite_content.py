"""Process that opens a SQLite database, which recovers it, and writes its content to stdout as JSON.

It is a separate process because the one that serves the mounted folder must not wait for that folder: killed while
waiting, it could not answer.
"""

from __future__ import annotations

import json
import sqlite3
import sys

from dbdyno.base.json_types import JsonObject
from dbdyno.cuts.sqlite_load import open_database


def content(path: str, pragmas: dict[str, str]) -> JsonObject:
    """Return the rows, the counts, and the corrupt parts.

    Raises:
        sqlite3.OperationalError: the device fails.
    """
    try:
        connection = open_database(path, pragmas)
        problems = [row[0] for row in connection.execute("pragma integrity_check(3)") if row[0] != "ok"]
        orphans = connection.execute("pragma foreign_key_check").fetchall()
        problems += [f"{len(orphans)} rows violate the foreign key"] if orphans else []
        rows = connection.execute("select number, session, payload from rows not indexed").fetchall()
        counts = connection.execute("select session, n from counts").fetchall()
        connection.close()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if "disk I/O error" in str(error):
            raise
        return {"rows": [], "counts": [], "corrupt": str(error)}
    return {"rows": rows, "counts": counts, "corrupt": "; ".join(problems)}


if __name__ == "__main__":
    try:
        json.dump(content(sys.argv[1], json.loads(sys.argv[2])), sys.stdout)
    except sqlite3.Error as failed:
        sys.exit(str(failed))
