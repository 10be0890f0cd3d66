"""What a session of MariaDB waits for, in the classes that all engines share.

States are those of the process list, events those of the performance schema.
https://mariadb.com/kb/en/general-thread-states/
"""

from __future__ import annotations

import re

_STATES = (
    (r"waiting for .* lock|waiting for table .*|.* metadata lock|user lock", "lock"),
    (r"commit|.*prior transaction.*|waiting for .*semi-sync.*", "commit"),
    (r"(writing|reading|sending|receiving) .*(net|client)|sending to client", "network"),
    (r"user sleep|.* has sent all .*|init for .*", "idle"),
)
_EVENTS = (
    ("wait/io/file/innodb/innodb_log", "commit"),
    ("wait/io/file/sql/binlog", "commit"),
    ("wait/io/file/aria/translog", "log write"),
    ("wait/io/file/innodb/innodb_data", "data read"),
    ("wait/io/file/innodb/innodb_temp", "data write"),
    ("wait/io/file/", "data read"),
    ("wait/io/socket/", "network"),
    ("wait/synch/", "latch"),
    ("wait/lock/", "lock"),
    ("wait/io/table/", "CPU"),
    ("idle", "idle"),
)


def wait_class(kind: str | None, event: str | None) -> str:
    """One of `dbdyno.bench.postgres.events.CLASSES`. `kind`: lock, wait, state or idle, as sampled."""
    if kind in ("lock", "idle"):
        return kind
    name = event or ""
    if kind == "wait":
        return next((found for start, found in _EVENTS if name.startswith(start)), "other")
    folded = name.lower()
    return next((found for pattern, found in _STATES if re.fullmatch(pattern, folded)), "CPU")
