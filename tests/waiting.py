"""Waiting for what another process or thread does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(holds: Callable[[], T], patience_s: float = 120) -> T:
    """The first true answer; the last answer when patience ends."""
    deadline = time.monotonic() + patience_s
    while not (answer := holds()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return answer
