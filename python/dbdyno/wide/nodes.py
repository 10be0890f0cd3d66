"""Detection of restarted nodes, which may have lost writes that they acknowledged just before they stopped.

With `commitlog_sync: periodic`, Cassandra's default, a node acknowledges a write before its commit log is synced. A
write that was acknowledged at least two periods before the latest answer has been synced (a node delays writes if a
sync is late by half a period); later writes are repeated if a node was restarted meanwhile, which its generation shows.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any

UNKNOWN_S = 20.0
"""Twice the default period in seconds, for nodes that do not report their period."""
_PERIODS = 2
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_MODE = "select value from system_views.settings where name = 'commitlog_sync'"
_PERIOD = "select value from system_views.settings where name = 'commitlog_sync_period'"
_STARTS = "select address, port, generation from system_views.gossip_info"

Starts = dict[str, int]
"""Generation of each node by its address; it changes with each start."""


def node_generations(session: Any) -> Starts | None:
    """Return each node's generation, or None if nodes do not report it (before Cassandra 4.1, or other products)."""
    rows = _query(session, _STARTS)
    return {f"{address}:{port}": generation for address, port, generation in rows} if rows else None


def was_restarted(before: Starts | None, now: Starts | None) -> bool | None:
    """Return True if a node was restarted in between, or None if that is unknown."""
    if before is None or now is None:
        return None
    return any(now.get(node, generation) != generation for node, generation in before.items())


def loss_window_s(session: Any) -> float:
    """Return for how many seconds an acknowledged write can still be lost if its node's process dies."""
    mode, period = _query(session, _MODE), _query(session, _PERIOD)
    if mode and mode[0][0] != "periodic":
        return 0.0
    found = re.fullmatch(r"([0-9]{1,12})(ns|us|µs|ms|s|m|h|d)", period[0][0] or "") if period else None
    return _PERIODS * int(found[1]) * _UNITS_S[found[2]] if found else UNKNOWN_S


def _query(session: Any, cql: str) -> list[Any]:
    """Return the rows of a query, or none if the node does not support it or does not permit it."""
    from cassandra import InvalidRequest, Unauthorized

    try:
        return list(session.execute(cql))
    except (InvalidRequest, Unauthorized):
        return []


class Marks:
    """Number of rows acknowledged over time, and of those that no node can have lost (`sure`)."""

    def __init__(self, unsure_s: float, sure: int) -> None:
        self._unsure_s, self.sure = unsure_s, sure
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, at_s: float, done: int) -> None:
        """Note that rows up to `done` are acknowledged at monotonic time `at_s`; calls must be in order of time."""
        self._seen.append((at_s, done))
        while self._seen and self._seen[0][0] <= at_s - self._unsure_s:
            self.sure = self._seen.popleft()[1]
