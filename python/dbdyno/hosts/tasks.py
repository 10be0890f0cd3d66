"""Handling of tasks on a worker: a task is stopped when nobody waits for it any longer.

A task is unwanted once it was cancelled, once the process that asked for it died, or once the worker lost its
scheduler. Dask does not interrupt a task that has begun, so a thread watches for that.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

WATCH_S = 0.25


def local_version() -> str:
    """Return dbdyno's version in this process."""
    from dbdyno.base.version import VERSION

    return VERSION


@contextlib.contextmanager
def stop_if_unwanted(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` in another thread when the current task is no longer wanted."""
    distributed = importlib.import_module("distributed")
    worker = distributed.get_worker()
    key, ended = worker.get_current_task(), threading.Event()

    def watch() -> None:
        while not ended.wait(WATCH_S):
            if not _is_wanted(worker, key):
                stop()
                return

    thread = threading.Thread(target=watch, name="unwanted", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _is_wanted(worker: Any, key: str) -> bool:
    task = worker.state.tasks.get(key)
    running = str(getattr(worker.status, "name", "")) in ("running", "paused")
    return running and task is not None and task.state in ("executing", "long-running")
