"""Record of servers that recently did not answer a login, so that an ending run tries each only once, not per undo."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

UNANSWERED = "the server does not answer"
UNANSWERED_S = 15.0
"""Seconds during which this process does not contact a server again after an unanswered login."""
_unanswered: dict[str, float] = {}
"""Servers that did not answer a login, each with the time of the attempt (monotonic clock)."""


def note_unanswered(connection: Mapping[str, Any]) -> None:
    """Record that a login to this server timed out: the network is silent, or the server is stopped."""
    _unanswered[_server(connection)] = time.monotonic()


def is_unanswered(connection: Mapping[str, Any]) -> bool:
    """Return True if a login to this server timed out in the last `UNANSWERED_S` seconds."""
    return time.monotonic() - _unanswered.get(_server(connection), -math.inf) < UNANSWERED_S


def _server(connection: Mapping[str, Any]) -> str:
    return " ".join(str(connection.get(name) or "") for name in ("host", "hostaddr", "port", "unix_socket"))
