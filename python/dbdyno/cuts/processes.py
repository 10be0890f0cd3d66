"""Engines under power cuts that are libraries, so that their load is a separate process.

    LOAD     prints `t NUMBER` before a commit and `a NUMBER` after it, on stdout
    CONTENT  opens the data, which recovers them, and writes everything to stdout as JSON

The process that serves the mounted folder must not wait for that folder: killed while waiting, it could not answer.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from dbdyno.base.processes import python_environment
from dbdyno.cuts.engine import BrokenEngineError, wait_for_cut
from dbdyno.cuts.ledger import Content, Ledger

CONTENT_S = 60
"""Maximum time to read the content of a database [s]."""


class ProcessCuts(ABC):
    """A library as a `CutEngine`; subclasses define its processes."""

    version = repaired = ""
    changes_least, changes_most, recovery_changes_most = 5, 400, 6

    def __init__(self, work: Path) -> None:
        self._process: subprocess.Popen[str] | None = None
        self.folder, self.back = work / "mounted", work / "back"

    @abstractmethod
    def _load_command(self, first: int) -> list[str]:
        """Return the command for the load, whose commits are numbered from `first`."""

    @abstractmethod
    def _content_command(self) -> list[str]:
        """Return the command that writes `rows`, `counts` and `corrupt`."""

    def create(self) -> None:
        """Make empty folders."""
        for folder in (self.back, self.folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()

    def start(self) -> None:
        """Do nothing: opening the data recovers them."""
        return

    def load(self, ledger: Ledger, is_off: Callable[[], bool]) -> float:
        """Commit in a separate process until the power is off."""
        process = subprocess.Popen(
            self._load_command(max(ledger.tried, default=0) + 1),
            env=python_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._process = process
        reader = threading.Thread(target=_read, args=(process, ledger))
        reader.start()
        seen = wait_for_cut(lambda: is_off() or process.poll() is not None)
        process.kill()
        reader.join()
        process.wait()
        return seen

    def content(self) -> Content:
        """Return all rows, and the results of the engine's checks."""
        done = subprocess.run(
            self._content_command(),
            env=python_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=CONTENT_S,
        )
        if done.returncode != 0:
            raise BrokenEngineError(done.stderr.strip().rpartition("\n")[2])
        found = json.loads(done.stdout)
        counts = {int(session): count for session, count in found["counts"]}
        rows = [(number, payload) for number, _, payload in found["rows"]]
        return Content(rows, counts, [session for _, session, _ in found["rows"]], found["corrupt"])

    def log_bytes(self) -> int:
        """Return the size of the log from which a recovery begins [bytes]; 0 without one."""
        return 0

    def kill(self) -> None:
        """Kill the load process; no other process of the engine is running."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """Remove the folders of the device; the work folder belongs to the caller."""
        for folder in (self.back, self.folder):
            if not os.path.ismount(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _read(process: subprocess.Popen[str], ledger: Ledger) -> None:
    """Add the load's output to the ledger; an incomplete line is ignored."""
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            word, _, number = line.rstrip("\n").partition(" ")
            if line.endswith("\n") and word == "t":
                ledger.record_attempt(int(number))
            elif line.endswith("\n") and word == "a":
                ledger.acknowledge(int(number))
