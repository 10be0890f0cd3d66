"""A Dask scheduler and its workers as processes on 127.0.0.1, as if each ran on its own host."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from dbdyno.base.errors import TargetError


@dataclass
class Cluster:
    """A scheduler and its workers; `kill` stops one abruptly, like a crash."""

    address: str
    scheduler: subprocess.Popen[str]
    workers: list[subprocess.Popen[str]] = field(default_factory=list)

    def kill(self, process: subprocess.Popen[str]) -> None:
        process.send_signal(signal.SIGKILL)
        process.wait(20)


def started(
    name: str,
    options: Mapping[str, object],
    ready: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
) -> tuple[subprocess.Popen[str], str]:
    """Start a class of `distributed` in a process of its own, and return it with the line that says `ready`."""
    spec = json.dumps({"cls": name, "opts": options})
    path = f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")
    process = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_spec", *arguments, "--spec", spec],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONPATH": path, **(environment or {})},
    )
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if ready in line:
            threading.Thread(target=_drain, args=(process.stderr,), daemon=True).start()
            return process, line
    raise AssertionError("".join(said))


def _drain(stream: IO[str]) -> None:
    """Read a process's output, since it logs every lease and would block after some minutes, when the pipe is full."""
    with contextlib.suppress(ValueError):  # closed meanwhile
        for _ in stream:
            pass


def fail() -> None:
    """Raise an error on a worker."""
    raise TargetError("planted", where="here", next_step="do better")


def watched_tasks() -> int:
    """Return the number of tasks that run on a worker and would stop if nobody waited for them."""
    return sum(thread.name == "unwanted" for thread in threading.enumerate())


def ended(process: subprocess.Popen[str]) -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
    process.kill()
    process.wait()
    if process.stderr is not None:
        process.stderr.close()


def add_worker(
    found: Cluster,
    folder: Path,
    name: str,
    environment: Mapping[str, str] | None = None,
    threads: int = 1,
    host: str = "127.0.0.1",
) -> None:
    """Start one more worker; the caller must stop it."""
    options = {
        "host": host,
        "nthreads": threads,
        "dashboard": False,
        "name": name,
        "local_directory": str(folder),
        "death_timeout": 20,
    }
    worker, _ = started("distributed.Worker", options, "Registered to:", found.address, environment=environment)
    found.workers.append(worker)


@contextlib.contextmanager
def cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """Start a scheduler and `workers` workers, and end them at the end."""
    with contextlib.ExitStack() as stack:
        options = {"host": "127.0.0.1", "port": 0, "dashboard": False}
        scheduler, line = started("distributed.Scheduler", options, "Scheduler at:")
        stack.callback(ended, scheduler)
        found = Cluster(line.split("Scheduler at:")[1].strip(), scheduler)
        for number in range(workers):
            add_worker(found, folder, f"worker-{number}")
            stack.callback(ended, found.workers[-1])
        yield found
