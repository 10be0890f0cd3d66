"""Classes of wait events, from the core's catalogue for all engines (`crates/dyno-evidence/catalogue`).

An event has the same class in a trace, in a snapshot, in samples taken during a run and in a model. The waits of a
committing session are `commit`: the sync of the log, the lock that another session holds during its flush, a
synchronous standby. The same sync by a background process is `log write`: no commit waits for it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from dbdyno import _core

Engine = Literal["oracle", "postgresql", "mariadb"]

CLASSES = tuple(_core.wait_classes())
"""Wait classes that all engines share."""

ON_CPU = "CPU"
"""The event of a session that is working, or that waits for something the engine does not report."""


@lru_cache(maxsize=8192)
def wait_class(engine: Engine, engine_class: str | None, event: str | None, *, background: bool = False) -> str:
    """Return the class of a wait event, one of `CLASSES`; without an event the session was on the CPU.

    Args:
        engine: the engine that reported the event.
        engine_class: Oracle's wait class, PostgreSQL's wait event type, or the source of MariaDB's wait (lock, wait,
            state or idle).
        event: the engine's name of the event.
        background: the process does not serve a client's session.
    """
    found = _core.wait_class(engine, engine_class or "", event or "")
    return "log write" if background and found == "commit" else found
