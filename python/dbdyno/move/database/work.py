"""A running job that moves a database, with the servers it uses."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dbdyno.base.errors import MoveError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.binaries import Binaries
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.database.archive import Entry, digest, read
from dbdyno.move.ledger.folder import INNER, Ledger
from dbdyno.move.reading.progress import Show
from dbdyno.move.reading.run import JobOptions, Plan

ARCHIVE, STATISTICS, TARGET_ARCHIVE = "schema.dump", "statistics.dump", "target.dump"
Meter = Callable[[], Show | None]
"""Function that returns the progress display for one phase."""


@dataclass
class Job:
    """A running job that moves a database, with the servers it uses."""

    target: Postgres
    ledger: Ledger
    programs: Binaries
    how: JobOptions
    meter: Meter
    level: str
    spent: dict[str, float]

    @property
    def plan(self) -> Plan:
        """Return the job's plan from the ledger."""
        return Plan.from_json(self.ledger.plan)

    @property
    def database(self) -> JsonObject:
        """Return the plan's description of the database apart from its rows."""
        found: JsonObject = self.ledger.plan["database"]
        return found

    def archive(self, name: str = ARCHIVE) -> list[Entry]:
        """Return the entries of one of the job's archives.

        Raises:
            MoveError: The archive is not the one that the job wrote.
        """
        place = self.ledger.folder / INNER / name
        if not place.is_file() or digest(place) != self.database["archives"].get(name):
            raise MoveError(
                "is not the archive that the job wrote, so it is not executed",
                where=str(place),
                next_step="drop the target database, create it again, and start a new job",
            )
        return read(place)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Record a phase and its duration in the ledger."""
        began = time.monotonic()
        with self.ledger.phase(name):
            yield
        self.spent[name] = self.spent.get(name, 0.0) + time.monotonic() - began

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the source's tables and indexes by name [bytes]."""
        sizes = {f"{one['schema']}.{one['name']}": int(one["bytes"]) for one in self.database["indexes"]}
        return {**{f"{t.schema}.{t.name}": t.relations[0].bytes for t in self.plan.tables}, **sizes}
