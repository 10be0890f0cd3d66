"""SQLite under power cuts; the load is a separate process, since the engine is a library."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from dbdyno.base.errors import DeviceError, errors_as
from dbdyno.base.processes import python_command
from dbdyno.cuts.ledger import Content
from dbdyno.cuts.plan import CutPlan
from dbdyno.cuts.processes import ProcessCuts
from dbdyno.cuts.sqlite_load import TABLES, open_database

FILE = "cuts.db"


class SqliteCuts(ProcessCuts):
    """A SQLite database as a `CutEngine`."""

    version = sqlite3.sqlite_version

    def __init__(self, plan: CutPlan, work: Path) -> None:
        super().__init__(work)
        self._pragmas = plan.settings
        self._log_bytes = 0

    def create(self) -> None:
        """Make an empty database."""
        super().create()
        step = "correct the settings in the plan"
        with errors_as(DeviceError, sqlite3.Error, "SQLite refuses these settings", "settings", step):
            connection = open_database(str(self.back / FILE), self._pragmas)
            for statement in TABLES:
                connection.execute(statement)
            connection.close()

    def content(self) -> Content:
        """Return all rows, read from the table without an index, and what integrity and foreign key checks find."""
        if not (self.back / FILE).exists():
            return Content(corrupt="the database file is gone")
        logs = [self.back / f"{FILE}-{kind}" for kind in ("journal", "wal")]
        self._log_bytes = sum(log.stat().st_size for log in logs if log.exists())
        return super().content()

    def log_bytes(self) -> int:
        """Return the size that the journal or write-ahead log had when the database was opened [bytes]."""
        return self._log_bytes

    def _load_command(self, first: int) -> list[str]:
        path = str(self.folder / FILE)
        return python_command("dbdyno.cuts.sqlite_load", path, json.dumps(self._pragmas), str(first))

    def _content_command(self) -> list[str]:
        return python_command("dbdyno.cuts.sqlite_content", str(self.folder / FILE), json.dumps(self._pragmas))
