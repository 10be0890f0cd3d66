"""Blocks of a model run on workers: each block is a task that returns the bytes of its evidence.

A block depends on nothing but the specification and its number, so that its parts are the same wherever it ran.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dbdyno.base.files import write_output
from dbdyno.base.signals import Interrupted
from dbdyno.hosts.tasks import stop_if_unwanted

if TYPE_CHECKING:
    from dbdyno.base.core_types import ModelBlock, ModelSpec
    from dbdyno.hosts.workers import Task, Workers


class BlockParts(NamedTuple):
    """The core's report on a block, and its parts by path within the run's folder."""

    report: ModelBlock
    parts: dict[str, bytes]


def run_block(spec: ModelSpec, index: int) -> BlockParts:
    """Run a block on this worker and return it; without parts if it was stopped.

    Raises:
        ModelError: The specification is invalid.
    """
    from dbdyno import _core

    run = _core.ModelRun(spec)
    with tempfile.TemporaryDirectory(prefix="dbdyno-block-") as scratch:
        folder = Path(scratch)
        with stop_if_unwanted(run.stop):
            report = run.block(index, folder)
        parts = {} if report["stopped"] else {_below(file, folder): file.read_bytes() for file in _files(folder)}
    return BlockParts(report, parts)


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def _below(file: Path, folder: Path) -> str:
    return file.relative_to(folder).as_posix()


class ModelBlocks:
    """Blocks of a model run on workers, with the same methods as `_core.ModelRun`."""

    def __init__(self, workers: Workers, spec: ModelSpec, wanted: Sequence[int]) -> None:
        """Prepare the blocks with the numbers in `wanted`, in the order in which they are needed.

        Blocks are started before they are requested: as many as the workers can run at once, and one more per worker.
        """
        self._workers, self._spec = workers, spec
        self._waiting, self._tasks = list(wanted), dict[int, "Task[BlockParts]"]()
        self._lock, self._stopped, self._done = threading.Lock(), threading.Event(), 0

    def block(self, index: int, folder: Path) -> ModelBlock:
        """Wait for a block and write its parts into `folder`.

        Raises:
            Interrupted: The run was stopped.
            ModelError: The specification is invalid.
            TargetError: The scheduler is gone, or workers died repeatedly while they ran this block.
        """
        with self._lock:
            if index in self._waiting:
                self._waiting.remove(index)
                self._waiting.insert(0, index)
            elif index not in self._tasks:
                self._waiting.insert(0, index)
            self._start_ahead(index)
            task = self._tasks[index]
        try:
            report, parts = task.result(self._check)
        finally:
            with self._lock:
                self._tasks.pop(index, None)
        if report["stopped"]:
            raise Interrupted
        for name, content in parts.items():
            write_output(folder / name, content)
        self._done += sum(arm["transactions"] for arm in report["report"]["arms"])
        return report

    def progress(self) -> int:
        """Return the number of transactions in completed blocks."""
        return self._done

    def stop(self) -> None:
        """Cancel all incomplete blocks."""
        self._stopped.set()
        for task in list(self._tasks.values()):
            task.cancel()

    def _start_ahead(self, asked: int) -> None:
        room = self._workers.slots + len(self._workers.addresses)
        while self._waiting and (len(self._tasks) < room or asked not in self._tasks):
            index = self._waiting.pop(0)
            self._tasks[index] = self._workers.submit(run_block, self._spec, index)

    def _check(self) -> None:
        if self._stopped.is_set():
            raise Interrupted
