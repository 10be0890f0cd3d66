"""What was verified at the end of a job, and the sentences that say what it proves.

counts     always: each chunk's row count on the server equals the number of decoded rows
files      each file is read again: its rows and the sum of their hashes must be those that were received
source     the source is read again in the same snapshot, and must have the same rows and sums
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dbdyno import _core
from dbdyno.base.errors import MoveError
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres.source import Snapshot
from dbdyno.move.ledger.folder import MODULUS, Ledger, files_of
from dbdyno.move.nouns import with_noun
from dbdyno.move.proof.cost import sentence
from dbdyno.move.reading.run import JobOptions, Plan, Reading, events, job_of


@dataclass(frozen=True)
class Proof:
    """Result of the verification of a job; `differs` holds sentences about what does not agree."""

    rows: int
    hash: str
    chunks: int
    chunks_in_all: int
    instants: tuple[tuple[str, int], ...]
    files: bool = False
    source: bool = False
    differs: tuple[str, ...] = ()
    cost: str | None = None
    has_files: bool = True
    """True if the rows went into files of the job."""
    from_files: bool = False

    def sentences(self) -> list[str]:
        """Return the result as sentences."""
        chunks = f"{self.chunks} of {with_noun(self.chunks_in_all, 'chunk')}"
        lines = [f"{with_noun(self.rows, 'row')} in {chunks}, hash {self.hash}."]
        if self.from_files:
            lines.append(f"All of the files as they were at {self.instants[0][0]}, by size and time.")
        elif len(self.instants) == 1:
            lines.append(f"All as of one instant: {self.instants[0][0]}.")
        elif self.instants:
            parts = ", ".join(f"{with_noun(count, 'chunk')} as of {at}" for at, count in self.instants)
            lines.append(f"NOT one instant: {parts}. A row that moved in between is missing or duplicated.")
        lines += [f"DIFFERS: {one}" for one in self.differs]
        if self.differs:
            return lines
        checked = ["the server's count of each chunk is the number of rows that were decoded"]
        if self.files:
            checked.append("the files, read again, hold exactly those rows")
        if self.source:
            checked.append("the source, read again in the same snapshot, gave the same rows")
        lines.append(f"Proved: {'; '.join(checked)}.")
        if self.has_files and not self.files:
            lines.append("Not checked: the files were not read again (`dbdyno move verify` does).")
        return lines if self.cost is None else [*lines, self.cost]


def recorded_proof(ledger: Ledger) -> Proof:
    """Return the proof that the job's records give, without reading rows."""
    records = ledger.records()
    return Proof(
        rows=sum(record["rows"] for record in records.values()),
        hash=total_hash(records),
        chunks=len(records),
        chunks_in_all=len(ledger.plan["chunks"]),
        instants=_instants(ledger.manifest["snapshots"], records),
        cost=sentence(ledger.manifest.get("cost", [])),
        has_files=not ledger.plan.get("into"),
        from_files=bool(ledger.plan.get("files")),
    )


def check_files(ledger: Ledger, proved: Proof) -> Proof:
    """Read the job's files again and add the result to `proved`.

    Raises:
        MoveError: The job has no files because its rows went to a server.
    """
    if ledger.plan.get("into"):
        raise MoveError(
            "the job wrote no files: its rows were loaded into a server",
            where=str(ledger.folder),
            next_step="check the rows while the job runs, with `--verify source` or `--verify target`",
        )
    differs = []
    with _brought(ledger) as place_of:
        for number, record in sorted(ledger.records().items()):
            for one in files_of(ledger.plan["chunks"][number], record):
                words = _file_differs(place_of(one["file"]), one)
                if words is not None:
                    differs.append(words)
    missing = proved.chunks_in_all - proved.chunks
    if missing:
        differs.append(
            f"{missing} of {with_noun(proved.chunks_in_all, 'chunk')} are not finished, or their files are gone"
        )
    return replace(proved, files=True, differs=(*proved.differs, *differs))


@contextlib.contextmanager
def _brought(ledger: Ledger) -> Iterator[Callable[[str], Path]]:
    """Yield a function that returns a file's local path; files on a Hadoop file system are downloaded one at a time."""
    place = ledger.plan.get("place")
    if place is None:
        yield lambda name: ledger.folder / name
        return
    from dbdyno.move.spark.files import Hadoop

    there = Hadoop(place)
    with tempfile.TemporaryDirectory(prefix="dbdyno-move-") as folder:

        def bring(name: str) -> Path:
            local = Path(folder) / "file.parquet"
            there.get(name, local)
            return local

        yield bring


def check_source(target: Postgres, ledger: Ledger, snapshot: Snapshot, options: JobOptions, proved: Proof) -> Proof:
    """Read the source again in the same snapshot and add the result to `proved`.

    Raises:
        MoveError: The source cannot be read.
    """
    plan, records = Plan.from_json(ledger.plan), ledger.records()
    here = len(ledger.manifest["snapshots"]) - 1
    finished = {number for number, record in records.items() if record["snapshot"] == here}
    chunks = [chunk for chunk in plan.chunks if chunk.number in finished]
    differs = []
    for event in events(job_of(Reading(target, plan, chunks, snapshot, options)), snapshot):
        if "failed" in event and event["failed"]["kind"] != "stopped":
            raise MoveError(event["failed"]["message"], where="reading the source again")
        done = event.get("done")
        if done and _pair(done) != _pair(records[done["number"]]):
            differs.append(f"chunk {done['number']}: the source returned other rows when it was read again")
    return replace(proved, source=len(chunks) == len(plan.chunks), differs=(*proved.differs, *differs))


def compare_rereads(ledger: Ledger, proved: Proof, second: Mapping[int, Mapping[str, Any]]) -> Proof:
    """Compare chunks that the same sessions read twice in one snapshot, and add the result to `proved`."""
    records = ledger.records()
    differs = [
        f"chunk {number}: the source returned other rows when it was read again"
        for number, one in sorted(second.items())
        if _pair(one) != _pair(records[number])
    ]
    return replace(proved, source=len(second) == len(records), differs=(*proved.differs, *differs))


def total_hash(records: Mapping[int, Mapping[str, Any]]) -> str:
    """Return the sum of all chunks' hashes as 32 hexadecimal digits."""
    return f"{sum(int(record['hash'], 16) for record in records.values()) % MODULUS:032x}"


def _file_differs(place: Path, record: Mapping[str, Any]) -> str | None:
    try:
        rows, found = _core.move_read_back(place)
    except MoveError as error:
        return str(error.message)
    if (rows, found) == _pair(record):
        return None
    written = f"{with_noun(record['rows'], 'row')}, hash {record['hash']}"
    return f"{place.name}: {with_noun(rows, 'row')}, hash {found}; written were {written}"


def _pair(record: Mapping[str, Any]) -> tuple[int, str]:
    return record["rows"], record["hash"]


def _instants(
    snapshots: Sequence[Mapping[str, Any]], records: Mapping[int, Mapping[str, Any]]
) -> tuple[tuple[str, int], ...]:
    counts = [sum(record["snapshot"] == place for record in records.values()) for place in range(len(snapshots))]
    return tuple((str(one["at"]), count) for one, count in zip(snapshots, counts, strict=True) if count)
