"""Each worker first prepares a share of the test modules, and then finds the modules of the others prepared.

pytest rewrites the assertions of each module that it collects, which costs as much processor time as all the rest of
collecting, and caches the result beside the module. Workers that start together in the same order would all do the same
work. With four workers, each does a quarter of it first and reads the rest from the cache.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

# What is rewritten or compiled is kept, whatever the caller's shell says: else every worker would rewrite all of it,
# and each process that tests start would compile the whole package, half a second of processor time.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# As commands have it (dbdyno/base/own_variables.py).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Import this worker's share; an error is reported later, when the module is collected."""
    worker: dict[str, int | str] | None = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    number = int(str(worker["workerid"]).removeprefix("gw"))
    with no_garbage_collections():
        for path in share(session.config.args, number, int(worker["workercount"])):
            if str(path.parent) not in sys.path:
                sys.path.insert(0, str(path.parent))
            with contextlib.suppress(Exception, pytest.skip.Exception):
                importlib.import_module(path.stem)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without garbage collections."""
    with no_garbage_collections():
        return (yield)


@contextlib.contextmanager
def no_garbage_collections() -> Iterator[None]:
    """Collect no garbage: nearly all that is imported and collected stays, and would be looked through again and again,
    which takes a second of each worker."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Exclude the thousands of tests, which live until the end, from all later garbage collections.

    There is no collection before: it takes half a second and finds hardly any garbage.
    """
    gc.freeze()


def share(arguments: list[str], number: int, workers: int) -> list[Path]:
    """Return the modules that one of `workers` workers prepares first."""
    folders = [path for path in map(Path, arguments) if path.is_dir()]
    return sorted(path for folder in folders for path in folder.resolve().rglob("test_*.py"))[number::workers]
