"""Cache of results that are valid until their sources change; the least recently used result is dropped first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class ResultCache(Generic[T]):
    """At most `most` results by name, each with the state of its sources.

    If two viewers request the same result at the same time, both wait for a single computation.
    """

    def __init__(self, limit: int) -> None:
        self._most = limit
        self._known: OrderedDict[str, tuple[Hashable, T]] = OrderedDict()
        self._lock = threading.Lock()
        self._making: dict[str, threading.Lock] = {}

    def get(self, name: str, state: Hashable, make: Callable[[], T]) -> T:
        """Return the result cached under a name; compute it if it is missing or its sources have changed."""
        with self._lock:
            mine = self._making.setdefault(name, threading.Lock())
        with mine:
            known = self._known.get(name)
            if known is None or known[0] != state:
                known = (state, make())
            with self._lock:
                self._known[name] = known
                self._known.move_to_end(name)
                while len(self._known) > self._most:
                    gone, _ = self._known.popitem(last=False)
                    self._making.pop(gone, None)
        return known[1]
