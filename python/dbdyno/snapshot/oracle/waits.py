"""Oracle's wait classes and events in the classes that all engines share.

https://docs.oracle.com/en/database/oracle/oracle-database/19/refrn/classes-of-wait-events.html
"""

from __future__ import annotations

_CLASSES = {
    "Commit": "commit",
    "User I/O": "data read",
    "System I/O": "data write",
    "Concurrency": "latch",
    "Application": "lock",
    "Network": "network",
    "Idle": "idle",
}
_EVENTS = {
    "log file sync": "commit",
    "log file parallel write": "log write",
    "log file single write": "log write",
    "log buffer space": "log write",
    "db file parallel write": "data write",
    "direct path write": "data write",
    "direct path write temp": "data write",
    "control file sequential read": "data read",
    "free buffer waits": "free buffer",
    "write complete waits": "free buffer",
    "buffer busy waits": "latch",
    "read by other session": "data read",
}


def wait_class(kind: str | None, event: str | None) -> str:
    """One of `dbdyno.bench.postgres.events.CLASSES`; without an event the session was on the CPU."""
    if not event:
        return "CPU"
    if event.startswith(("enq: TX", "enq: TM")):
        return "lock"
    return _EVENTS.get(event) or _CLASSES.get(kind or "", "other")
