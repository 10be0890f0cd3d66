"""SQLite under power cuts: the load is a process of its own, since the engine is a library."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from dbdyno.base.errors import DeviceError
from dbdyno.base.processes import python_command, python_environment
from dbdyno.cuts.engine import BrokenEngineError, wait_for_cut
from dbdyno.cuts.ledger import Content, Ledger
from dbdyno.cuts.plan import CutPlan
from dbdyno.cuts.sqlite_load import TABLES, opened

FILE = "cuts.db"
CONTENT_S = 60
"""Seconds that reading the database may take."""


class SqliteCuts:
    """A SQLite database as a `CutEngine`."""

    changes_least, changes_most, recovery_changes_most = 5, 400, 6

    def __init__(self, plan: CutPlan, work: Path) -> None:
        self._pragmas = plan.settings
        self._process: subprocess.Popen[str] | None = None
        self.folder, self.back = work / "mounted", work / "back"

    def create(self) -> None:
        """Make an empty database."""
        for folder in (self.back, self.folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        try:
            connection = opened(str(self.back / FILE), self._pragmas)
            for statement in TABLES:
                connection.execute(statement)
            connection.close()
        except sqlite3.Error as error:
            raise DeviceError(f"SQLite refuses these settings: {error}", where="settings") from error

    def start(self) -> None:
        """Do nothing: the first that opens the database recovers it."""

    def load(self, ledger: Ledger, is_off: Callable[[], bool]) -> float:
        """Commit in a process until the power is off."""
        first = max(ledger.tried, default=0) + 1
        path = self.folder / FILE
        command = python_command("dbdyno.cuts.sqlite_load", str(path), json.dumps(self._pragmas), str(first))
        process = subprocess.Popen(
            command, env=python_environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
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
        """Return all rows, by the table and not by an index, and what integrity_check says."""
        if not (self.back / FILE).exists():
            return Content(corrupt="the database file is gone")
        command = python_command("dbdyno.cuts.sqlite_content", str(self.folder / FILE), json.dumps(self._pragmas))
        done = subprocess.run(
            command, env=python_environment(), capture_output=True, text=True, check=False, timeout=CONTENT_S
        )
        if done.returncode != 0:
            raise BrokenEngineError(done.stderr.strip().rpartition("\n")[2])
        found = json.loads(done.stdout)
        counts = {int(session): count for session, count in found["counts"]}
        rows = [(number, payload) for number, _, payload in found["rows"]]
        return Content(rows, counts, [session for _, session, _ in found["rows"]], found["corrupt"])

    def kill(self) -> None:
        """End the load; nothing else is running."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """Remove the folders; the work folder is the caller's."""
        for folder in (self.back, self.folder):
            if not os.path.ismount(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _read(process: subprocess.Popen[str], ledger: Ledger) -> None:
    """Take what the load says into the ledger; a line that is not whole was not said."""
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            word, _, number = line.rstrip("\n").partition(" ")
            if line.endswith("\n") and word == "t":
                ledger.try_one(int(number))
            elif line.endswith("\n") and word == "a":
                ledger.acknowledge(int(number))
