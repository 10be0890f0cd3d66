"""Facts about the server: its identity, its start, and what it measures. A fact that cannot be read is omitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.mariadb.server import IDENTITY
from dbdyno.snapshot.engines.mariadb.connection import driver

Rows = Callable[[str], list[tuple[Any, ...]]]

GRANT = "grant process on *.* and select on performance_schema.* to the role"

_QUERIES: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("identity", "version", "address", "role", "database", "performance_schema", "read_only"),
        f"select {IDENTITY}, @@version, concat(@@hostname, ':', @@port), current_user(),"
        " database(), @@performance_schema, @@read_only",
    ),
    (
        ("long_transactions", "oldest_transaction_us"),
        "select coalesce(sum(trx_started < now() - interval 5 second), 0),"
        " timestampdiff(microsecond, min(trx_started), now()) from information_schema.innodb_trx",
    ),
    (
        ("clients",),
        "select count(*) from information_schema.processlist where id <> connection_id()"
        " and command not in ('Daemon', 'Binlog Dump')",
    ),
    (
        ("digests", "waits_timed", "statements_current", "waits_current"),
        "select sum(name = 'statements_digest' and enabled = 'YES'),"
        " (select count(*) from performance_schema.setup_instruments"
        "   where name like 'wait/synch/%' and timed = 'YES' and enabled = 'YES'),"
        " sum(name = 'events_statements_current' and enabled = 'YES'),"
        " sum(name = 'events_waits_current' and enabled = 'YES')"
        " from performance_schema.setup_consumers",
    ),
)


def read(rows: Rows) -> JsonObject:
    """Return the facts; a fact that the server refuses is missing."""
    found: JsonObject = {}
    for names, sql in _QUERIES:
        try:
            row = (rows(sql) or [(None,) * len(names)])[0]
        except driver().Error as error:
            if isinstance(error, driver().InterfaceError):
                raise
            continue
        for name, value in zip(names, row, strict=True):
            whole = value is not None and not isinstance(value, str)
            found[name] = int(value) if whole else value
    return found
