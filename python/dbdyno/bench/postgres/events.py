"""PostgreSQL's wait events, each in the class that all engines share. One table, versions 10 to 18.

Names differ between versions in spelling only (`WALSync` and `WalSync`, `WALWriteLock` and
`WALWrite`): they are compared without case, underscores, and an LWLock's last `Lock`. An event that
the table does not name falls to its type.

What a committing session waits for is `commit`: the sync of the log, the lock that another's flush
holds, a synchronous standby. The same sync by a background process is `log write`.
https://www.postgresql.org/docs/current/monitoring-stats.html#WAIT-EVENT-TABLE
"""

from __future__ import annotations

CLASSES = (
    "commit",
    "log write",
    "data read",
    "data write",
    "free buffer",
    "lock",
    "latch",
    "network",
    "CPU",
    "idle",
    "other",
)
"""The classes that all engines share."""

ON_CPU = "CPU"
"""The event of a session that works and waits for nothing that the engine knows of."""

TYPE_CLASS = {
    "activity": "idle",
    "bufferpin": "latch",
    "buffer": "latch",
    "client": "network",
    "cpu": "CPU",
    "extension": "other",
    "injectionpoint": "other",
    "io": "other",
    "ipc": "other",
    "lock": "lock",
    "lwlock": "latch",
    "lwlocknamed": "latch",
    "lwlocktranche": "latch",
    "timeout": "idle",
}
"""The class of every event of a type that the table below does not name."""

EVENT_CLASS = {
    ("client", "libpqwalreceiverconnect"): "idle",
    ("client", "libpqwalreceiverreceive"): "idle",
    ("client", "waitforstandbyconfirmation"): "commit",
    ("client", "walreceiverwaitstart"): "idle",
    ("client", "walsenderwaitforwal"): "idle",
    ("client", "walsenderwaitwal"): "idle",
    ("io", "aioiocompletion"): "data read",
    ("io", "aioiouringexecution"): "data read",
    ("io", "aioiouringsubmit"): "data read",
    ("io", "buffileread"): "data read",
    ("io", "buffiletruncate"): "data write",
    ("io", "buffilewrite"): "data write",
    ("io", "datafileextend"): "data write",
    ("io", "datafileflush"): "data write",
    ("io", "datafileimmediatesync"): "data write",
    ("io", "datafileprefetch"): "data read",
    ("io", "datafileread"): "data read",
    ("io", "datafilesync"): "data write",
    ("io", "datafiletruncate"): "data write",
    ("io", "datafilewrite"): "data write",
    ("io", "slruflushsync"): "data write",
    ("io", "slruread"): "data read",
    ("io", "slrusync"): "data write",
    ("io", "slruwrite"): "data write",
    ("io", "twophasefilesync"): "commit",
    ("io", "twophasefilewrite"): "commit",
    ("io", "walbootstrapsync"): "log write",
    ("io", "walbootstrapwrite"): "log write",
    ("io", "walinitsync"): "log write",
    ("io", "walinitwrite"): "log write",
    ("io", "walsync"): "commit",
    ("io", "walsyncmethodassign"): "log write",
    ("io", "walwrite"): "log write",
    ("ipc", "bufferio"): "data read",
    ("ipc", "checkpointdone"): "data write",
    ("ipc", "checkpointstart"): "data write",
    ("ipc", "clientread"): "network",
    ("ipc", "procarraygroupupdate"): "commit",
    ("ipc", "safesnapshot"): "lock",
    ("ipc", "syncrep"): "commit",
    ("ipc", "xactgroupupdate"): "commit",
    ("ipc", "cloggroupupdate"): "commit",
    ("lwlock", "bufferio"): "data read",
    ("lwlock", "walwrite"): "commit",
    ("timeout", "registersyncrequest"): "data write",
    ("timeout", "spindelay"): "latch",
    ("timeout", "vacuumdelay"): "idle",
}
"""(type, event) to class, in folded spelling."""


def wait_class(event_type: str | None, event: str | None, *, background: bool = False) -> str:
    """The class of a wait event, one of `CLASSES`. Both None: the session was on the CPU.

    `background`: the process is not a client's session, so that nobody's commit waits for it.
    """
    if not event or event == ON_CPU:
        return "CPU"
    kind = _folded(event_type or "")
    name = _folded(event)
    if kind.startswith("lwlock"):
        kind, name = "lwlock", name.removesuffix("lock")
    found = EVENT_CLASS.get((kind, name)) or TYPE_CLASS.get(kind, "other")
    return "log write" if background and found == "commit" else found


def _folded(name: str) -> str:
    return name.casefold().replace("_", "").replace(" ", "")
