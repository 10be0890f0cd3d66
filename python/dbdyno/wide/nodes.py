"""Nodes that were started again: what they acknowledged just before they went may be gone.

With `commitlog_sync: periodic`, Cassandra's default, a node acknowledges a write before its commit log is synced. What
was acknowledged at least two periods before the newest answer is synced (the node holds writes back where a sync is
late by half a period); the rest is written again where a node has started since, which its generation tells.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any

UNKNOWN_S = 20.0
"""Twice the default period, for nodes that do not tell theirs."""
_PERIODS = 2
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_MODE = "select value from system_views.settings where name = 'commitlog_sync'"
_PERIOD = "select value from system_views.settings where name = 'commitlog_sync_period'"
_STARTS = "select address, port, generation from system_views.gossip_info"

Starts = dict[str, int]
"""The generation of each node: another one after each start."""


def starts(session: Any) -> Starts | None:
    """When the nodes were started; None where they do not tell (before Cassandra 4.1, or others than Cassandra)."""
    rows = _asked(session, _STARTS)
    return {f"{address}:{port}": generation for address, port, generation in rows} if rows else None


def again(before: Starts | None, now: Starts | None) -> bool | None:
    """Whether a node was started between; None where that is not known."""
    if before is None or now is None:
        return None
    return any(now.get(node, generation) != generation for node, generation in before.items())


def unsure_s(session: Any) -> float:
    """For how many seconds an acknowledged write may still be lost with its node's process."""
    mode, period = _asked(session, _MODE), _asked(session, _PERIOD)
    if mode and mode[0][0] != "periodic":
        return 0.0
    found = re.fullmatch(r"([0-9]{1,12})(ns|us|µs|ms|s|m|h|d)", period[0][0] or "") if period else None
    return _PERIODS * int(found[1]) * _UNITS_S[found[2]] if found else UNKNOWN_S


def _asked(session: Any, cql: str) -> list[Any]:
    """Rows; none where the node does not know the question, or does not answer it to this role."""
    from cassandra import InvalidRequest, Unauthorized

    try:
        return list(session.execute(cql))
    except (InvalidRequest, Unauthorized):
        return []


class Marks:
    """How many rows were acknowledged when, and how many of them no node can have lost."""

    def __init__(self, unsure_s: float, sure: int) -> None:
        self._unsure_s, self.sure = unsure_s, sure
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, at_s: float, done: int) -> None:
        """Rows up to `done` are acknowledged at `at_s` of a monotonic clock, in order."""
        self._seen.append((at_s, done))
        while self._seen and self._seen[0][0] <= at_s - self._unsure_s:
            self.sure = self._seen.popleft()[1]
