"""Jobs whose files are on a Hadoop file system: which places those are, and the work on them without Spark."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dbdyno import _core
from dbdyno.base.core_types import MoveEvent
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres.source import Snapshot
from dbdyno.move.ledger.folder import Ledger, files_of
from dbdyno.move.reading.run import How, Make, Plan, Say, job_of, work
from dbdyno.move.reading.splits import Chunk
from dbdyno.move.spark.files import Hadoop, settle

SERVERS = ("postgresql", "postgres", "mariadb", "mysql", "cassandra", "oracle", "file")
_PLACE = re.compile(r"([a-z][a-z0-9+.-]*)://")


def is_place(text: str) -> bool:
    """Whether it names a folder on a Hadoop file system."""
    found = _PLACE.match(text)
    return found is not None and found[1] not in SERVERS


def reach(place: str) -> None:
    """Raises `MoveError` where it cannot be reached: before a job begins."""
    Hadoop(place).sizes()


@contextlib.contextmanager
def made_away(ledger: Ledger) -> Iterator[Make | None]:
    """What makes a job whose files go there; None for one with files of its own."""
    if ledger.plan.get("place") is None:
        yield None
        return
    with uploading(Hadoop(ledger.plan["place"])) as make:
        yield make


def settled(ledger: Ledger, settings: Mapping[str, str] | None = None) -> None:
    """At the end of a job: its files stand there, whole; then it is complete. Raises `MoveError`."""
    chunks = [chunk["file"] for chunk in ledger.plan["chunks"]]
    settle(Hadoop(ledger.plan["place"], settings), ledger.sizes(), chunks)
    ledger.manifest["status"] = "complete"
    ledger.save()


def work_away(target: Postgres, ledger: Ledger, snapshot: Snapshot, how: How, say: Say) -> None:
    """Reads what is not finished, and puts each file there. Raises `MoveError`; the job can go on then."""
    say(f"files go to {ledger.plan['place']}")
    with made_away(ledger) as make:
        work(target, ledger, snapshot, how, say, make)
    settled(ledger)


class Uploading:
    """The face of the core's job: each file that is finished is put there before it is told."""

    def __init__(self, job: _core.MoveJob, folder: Path, names: Mapping[int, str], there: Hadoop) -> None:
        self._job, self._folder, self._names, self._there = job, folder, names, there
        self.progress, self.begun, self.stop = job.progress, job.begun, job.stop

    def next(self, limit_s: float) -> MoveEvent | None:
        """What has happened since; None at the end."""
        event = self._job.next(limit_s)
        if event is not None and "done" in event:
            for one in files_of({"file": self._names[event["done"]["number"]]}, event["done"]):
                self._there.put(self._folder / one["file"], one["file"])
                (self._folder / one["file"]).unlink()
        return event


@contextlib.contextmanager
def uploading(there: Hadoop) -> Iterator[Make]:
    """What makes a job whose files go there, by way of a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="dbdyno-move-") as place:

        def make(
            target: Postgres, plan: Plan, chunks: Sequence[Chunk], snapshot: Snapshot, how: How, folder: Path | None
        ) -> Any:
            for chunk in chunks:
                (Path(place) / chunk.file).parent.mkdir(parents=True, exist_ok=True)
            job = job_of(target, plan, chunks, snapshot, how, Path(place))
            return Uploading(job, Path(place), {one.number: one.file for one in chunks}, there)

        yield make
