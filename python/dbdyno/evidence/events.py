"""The class of a wait event: one catalogue for all engines, the core's own (`crates/dyno-evidence/catalogue`).

An event has the same class in a trace, a snapshot, beside a load and in a model. What a committing
session waits for is `commit`: the sync of the log, the lock that another's flush holds, a
synchronous standby. The same sync by a background process is `log write`: nobody's commit waits for it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from dbdyno import _core

Engine = Literal["oracle", "postgresql", "mariadb"]

CLASSES = tuple(_core.wait_classes())
"""The classes that all engines share."""

ON_CPU = "CPU"
"""The event of a session that works and waits for nothing that the engine knows of."""


@lru_cache(maxsize=8192)
def wait_class(engine: Engine, engine_class: str | None, event: str | None, *, background: bool = False) -> str:
    """The class of a wait event, one of `CLASSES`; no event: the session was on the CPU.

    `engine_class`: Oracle's wait class, PostgreSQL's type, what told of MariaDB's wait (lock, wait, state or idle).
    `background`: the process is not a client's session.
    """
    found = _core.wait_class(engine, engine_class or "", event or "")
    return "log write" if background and found == "commit" else found
