"""All rows in one file: Arrow IPC (a file, or a stream to stdout) or CSV as the server writes it.

The workers take turns writing, so the order of rows is undefined. The file gets its name when it is complete and on
disk. There is no ledger: an interrupted move must be started again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from dbdyno import _core
from dbdyno.base.core_types import MoveEvent, MoveFailure, MoveFinishedChunk
from dbdyno.base.errors import MoveError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres.columns import Column
from dbdyno.move.engines.postgres.source import Request, Snapshot, application_name, take_snapshot
from dbdyno.move.ledger.folder import MODULUS
from dbdyno.move.nouns import with_noun
from dbdyno.move.proof.cost import CostSampler, sentence
from dbdyno.move.reading.progress import ChunkProgress
from dbdyno.move.reading.run import (
    NEXT_STEPS,
    JobOptions,
    Plan,
    Reading,
    Say,
    events,
    job_of,
    lost_snapshot,
    new_id,
    notes_before,
    plan_of,
)

FORMS = {".arrow": "arrow", ".csv": "csv"}
STDOUT = "-"


@dataclass(frozen=True)
class WrittenFile:
    """Result of writing one file."""

    rows: int
    at: str
    hash: str | None
    read_again: bool
    cost: str | None

    def sentences(self) -> list[str]:
        """Return the result as sentences."""
        hashed = f", hash {self.hash}" if self.hash is not None else ""
        proved = "the server's count of each chunk is the number of rows received"
        again = "; the file, read again, holds exactly those rows" if self.read_again else ""
        lines = [
            f"{with_noun(self.rows, 'row')}{hashed}.",
            f"All as of one instant: {self.at}.",
            f"Proved: {proved}{again}.",
        ]
        return lines if self.cost is None else [*lines, self.cost]


def write(target: Postgres, request: Request, to: str, options: JobOptions, *, read_again: bool = False) -> WrittenFile:
    """Write one table to a file or to stdout.

    Args:
        target: The server to read.
        request: The table or query to read.
        to: A path whose suffix chooses the format, or `-` for stdout.
        options: Number of workers, memory and other limits.
        read_again: Read the written file again and compare its rows (not for CSV).

    Raises:
        MoveError: The file exists, several tables are requested, or the server reports an error.
        BrokenPipeError: The reader of stdout closed it early.
    """
    path = None if to == STDOUT else Path(to)
    form = "stream" if path is None else FORMS[path.suffix]
    if path is not None and path.exists():
        raise MoveError("already exists", where=to, next_step="name a new file")
    with take_snapshot(target, request, new_id()) as snapshot:
        plan = plan_of(target, snapshot, new_id(), options)
        if len(plan.tables) != 1:
            raise MoveError(
                f"the job has {len(plan.tables)} tables, but one file can hold only one",
                where="TARGET",
                next_step="name only one table, or a folder as the target",
            )
        for line in notes_before(plan, snapshot.conn.info.server_version):
            options.say(line)
        watch = CostSampler.for_job(target, snapshot.conn, application_name(plan.id))
        while True:
            single = {"path": None if path is None else str(path), "form": form, "head": _head(plan)}
            done, failed = _run(target, plan, snapshot, options, single, watch)
            if failed is None:
                break
            plan = as_text(plan, failed, path, options.say, Column.as_text, "in the same snapshot")
        rows = sum(one["rows"] for one in done)
        found = None if form == "csv" else f"{sum(int(one['hash'], 16) for one in done) % MODULUS:032x}"
        again = read_again and refuse_other_rows(to, rows, found)
        return WrittenFile(rows, snapshot.taken_at, found, again, sentence(watch.sessions(done)))


def refuse_other_rows(to: str, rows: int, found: str | None) -> bool:
    """Check that the written file contains the rows; return False for stdout, or if there is no hash to compare.

    Raises:
        MoveError: The file does not contain these rows.
    """
    if to == STDOUT or found is None:
        return False
    if _core.move_read_back(Path(to)) != (rows, found):
        raise MoveError(
            "does not contain the rows that were written",
            where=to,
            next_step="check the disk, then move the table again",
        )
    return True


def _run(
    target: Postgres, plan: Plan, snapshot: Snapshot, options: JobOptions, single: JsonObject, watch: CostSampler
) -> tuple[list[MoveFinishedChunk], MoveFailure | None]:
    job = job_of(Reading(target, plan, plan.chunks, snapshot, options, single=single))
    try:
        return collect(events(job, snapshot), job, plan, options, watch.sample)
    except psycopg.Error as error:
        raise lost_snapshot() from error
    finally:
        job.stop()


def collect(
    found: Iterable[MoveEvent], job: _core.MoveJob, plan: Plan, options: JobOptions, sample: Callable[[], None]
) -> tuple[list[MoveFinishedChunk], MoveFailure | None]:
    """Return a job's finished chunks and first failure or None; show progress, and call `sample` after each event."""
    done: list[MoveFinishedChunk] = []
    failed: MoveFailure | None = None
    progress = ChunkProgress(options.progress, {chunk.number: chunk.bytes for chunk in plan.chunks})
    for event in found:
        sample()
        if "done" in event:
            done.append(event["done"])
            progress.done(event["done"])
        elif "failed" in event and (failed is None or failed["kind"] == "stopped"):
            failed = event["failed"]
        progress.show(job.progress()[0])
    return done, failed


def as_text(
    plan: Plan, failed: MoveFailure, path: Path | None, say: Say, convert: Callable[[Any], Any], instant: str
) -> Plan:
    """Return the plan with the failed column read as text; raise an error if that cannot help or output was sent."""
    if failed["kind"] == "closed":
        raise BrokenPipeError
    if (changed := plan.with_text(failed, convert)) is None:
        step = NEXT_STEPS.get(failed["kind"], "").replace("run `dbdyno move resume`", "run the same command again")
        raise MoveError(failed["message"], next_step=step or None)
    if path is None:
        raise MoveError(
            failed["message"],
            where="stdout, which already has a part of the output",
            next_step=f"add --text {failed['column']} to move the column as the server prints it",
        )
    say(f"{failed['message']}: the column is moved as text; the table is read again, {instant}")
    return changed


def _head(plan: Plan) -> str:
    """Return the header line of a CSV, quoted as the server quotes."""
    return ",".join(_quote(one.name) for one in plan.tables[0].columns) + "\n"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if any(mark in name for mark in ',"\r\n') or name == "\\." else name
