"""Threads of tests: what is done at the same time as a block."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial


def _started(works: Iterable[Callable[[], object]]) -> list[threading.Thread]:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    return threads


@contextlib.contextmanager
def together(*works: Callable[[], object]) -> Iterator[None]:
    """Do each work in a thread of its own, and wait for all at the end of a block that does not fail."""
    threads = _started(works)
    yield
    for thread in threads:
        thread.join()


@contextlib.contextmanager
def meanwhile(*works: Callable[[threading.Event], object]) -> Iterator[None]:
    """Do each work in a thread of its own until the event that it gets is set, at the end of the block."""
    over = threading.Event()
    threads = _started(partial(work, over) for work in works)
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
