"""Jobs without Spark whose files go to a Hadoop file system."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dbdyno import _core
from dbdyno.base.core_types import MoveEvent
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres.source import Snapshot
from dbdyno.move.ledger.folder import Ledger, files_of
from dbdyno.move.reading.run import JobBuilder, JobOptions, Reading, job_of, run_job
from dbdyno.move.spark.files import Hadoop, verify_files

OTHER_SCHEMES = ("postgresql", "postgres", "mariadb", "mysql", "cassandra", "oracle", "file")
_PLACE = re.compile(r"([a-z][a-z0-9+.-]*)://")


def is_hadoop_url(text: str) -> bool:
    """Return True if the text is a URL on a Hadoop file system (its scheme is neither `file` nor a database's)."""
    found = _PLACE.match(text)
    return found is not None and found[1] not in OTHER_SCHEMES


def check_reachable(place: str) -> None:
    """Check that the folder can be reached, before a job begins.

    Raises:
        MoveError: The folder cannot be reached.
    """
    Hadoop(place).sizes()


@contextlib.contextmanager
def remote_job_builder(ledger: Ledger) -> Iterator[JobBuilder | None]:
    """Yield a builder of jobs whose files go to the Hadoop file system, or None for a job with local files."""
    if ledger.plan.get("place") is None:
        yield None
        return
    with upload_job_builder(Hadoop(ledger.plan["place"])) as make:
        yield make


def complete_remote_job(ledger: Ledger, settings: Mapping[str, str] | None = None) -> None:
    """Verify the files on the Hadoop file system and mark the job complete.

    Raises:
        MoveError: The size of a file differs from the size that was written.
    """
    chunks = [chunk["file"] for chunk in ledger.plan["chunks"]]
    verify_files(Hadoop(ledger.plan["place"], settings), ledger.sizes(), chunks)
    ledger.manifest["status"] = "complete"
    ledger.save()


def run_uploading_job(target: Postgres, ledger: Ledger, snapshot: Snapshot, options: JobOptions) -> None:
    """Read all unfinished chunks and upload each file; a job that fails can be resumed.

    Raises:
        MoveError: A chunk failed.
    """
    options.say(f"files go to {ledger.plan['place']}")
    with remote_job_builder(ledger) as make:
        run_job(target, ledger, snapshot, options, make)
    complete_remote_job(ledger)


class UploadJob:
    """Job with the interface of the core's `MoveJob` that uploads each finished file before reporting its chunk."""

    def __init__(self, job: _core.MoveJob, folder: Path, names: Mapping[int, str], hadoop: Hadoop) -> None:
        self._job, self._folder, self._names, self._there = job, folder, names, hadoop
        self.progress, self.begun, self.stop = job.progress, job.begun, job.stop

    def next(self, limit_s: float) -> MoveEvent | None:
        """Return the next event, an empty one after `limit_s` seconds, or None at the end of the job."""
        event = self._job.next(limit_s)
        if event is not None and "done" in event:
            for one in files_of({"file": self._names[event["done"]["number"]]}, event["done"]):
                self._there.put(self._folder / one["file"], one["file"])
                (self._folder / one["file"]).unlink()
        return event


@contextlib.contextmanager
def upload_job_builder(hadoop: Hadoop) -> Iterator[JobBuilder]:
    """Yield a builder of jobs whose files are uploaded from a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="dbdyno-move-") as place:

        def make(reading: Reading) -> Any:
            for chunk in reading.chunks:
                (Path(place) / chunk.file).parent.mkdir(parents=True, exist_ok=True)
            job = job_of(replace(reading, folder=Path(place)))
            return UploadJob(job, Path(place), {one.number: one.file for one in reading.chunks}, hadoop)

        yield make
