"""Waiting for the work of another process or thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(holds: Callable[[], T], patience_s: float = 120, *, pause_s: float = 0.02) -> T:
    """Return the first true answer, or the last answer when the time is up."""
    deadline = time.monotonic() + patience_s
    while not (answer := holds()) and time.monotonic() < deadline:
        time.sleep(pause_s)
    return answer


def retried(act: Callable[[], T], error: type[Exception], patience_s: float = 30) -> T:
    """What the first call returns that does not fail; when patience ends, its failure is that of this function."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return act()
        except error:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
