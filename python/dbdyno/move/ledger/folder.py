"""The folder of a job: its plan, and a record of each finished chunk.

    FOLDER/part-00000.parquet ...      the rows (with several tables: a folder per table)
    FOLDER/_dbdyno/manifest.json       source, snapshots, tables with their columns, chunks
    FOLDER/_dbdyno/chunks/00000.json   a record per finished chunk: rows, bytes, hash, file
    FOLDER/_dbdyno/lock                locked by the process that works on the job

A job from server to server has no files: its rows are in staging tables of the target, one per chunk.

A chunk's file is on disk under its final name before its record is written, and only the record counts: a kill at any
instant leaves a job whose finished chunks are known. Everything is written to a temporary file, synced and renamed.
Parquet readers skip names that begin with an underscore.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict, cast

from dbdyno.base.core_types import MoveRecord
from dbdyno.base.errors import EvidenceError, MoveError
from dbdyno.base.files import make_folder, make_inner_folder, write_atomically
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.files import read_json
from dbdyno.evidence.seal import is_own_plan, seal

PLAN = {"id": str, "source": str}
TABLE = {"schema": str, "name": str}
CHUNK = {"number": int, "table": int, "relation": int, "bytes": int, "file": str}
SNAPSHOT = {"id": str, "at": str}
RECORD = {"number": int, "rows": int, "file_bytes": int, "hash": str, "file": str, "snapshot": int}
PART = {"file": str, "rows": int, "hash": str, "file_bytes": int}
COST = {"looks": int, "waits": dict, "rows": int}
ATTEMPT = {"how": str, "began_ns": int, "workers": int, "memory_bytes": int, "phases": list}
PHASE = {"name": str, "began_ns": int, "ended_ns": int, "ending": str}
"""Fields of each JSON object that must be present with these types before the object is used."""
_HASH = re.compile(r"[0-9a-f]{1,32}")
DONE = "done"
MODULUS = 1 << 128
"""Modulus of sums of row hashes."""
VERSION = 1
INNER = "_dbdyno"


class Ledger:
    """Folder of a job, with the manifest that `save` writes.

    The manifest's plan is sealed: it is executed only if this user made it.
    """

    is_durable = True
    """False if records need not survive a crash of this machine, because the target notes finished chunks itself."""

    def __init__(self, folder: Path, manifest: JsonObject) -> None:
        self.folder = folder
        self.manifest = manifest

    @classmethod
    def create(cls, folder: Path, manifest: Mapping[str, Any]) -> Ledger:
        """Create a new job in a folder that does not exist yet or is empty.

        Raises:
            MoveError: The folder has a job or other files, or cannot be written.
        """
        try:
            if not folder.exists():
                make_folder(folder)
            elif (folder / INNER / "manifest.json").exists():
                raise MoveError(
                    "already contains a job",
                    where=str(folder),
                    next_step=f"see the job with `dbdyno move status {folder}`, or name another folder",
                )
            elif not folder.is_dir() or any(one.name != INNER for one in folder.iterdir()):
                raise MoveError("is not an empty folder", where=str(folder), next_step="name a new folder")
            elif (folder / INNER).is_dir():
                # What a job left that was killed before it had a plan.
                with cls(folder, {}).locked():
                    shutil.rmtree(folder / INNER)
            make_inner_folder(folder / INNER)
            make_inner_folder(folder / INNER / "chunks")
        except OSError as error:
            raise _cannot(folder, error) from None
        return cls(folder, {"version": VERSION, **manifest})

    def discard(self) -> None:
        """Remove the folder of a job that could not begin."""
        with contextlib.suppress(OSError):
            shutil.rmtree(self.folder / INNER)
            self.folder.rmdir()

    @classmethod
    def open(cls, folder: Path) -> Ledger:
        """Open the job of a folder.

        Raises:
            MoveError: There is no job, or its manifest cannot be read, is damaged, or is of another version.
        """
        place = folder / INNER / "manifest.json"
        if not place.exists():
            raise MoveError("contains no job", where=str(folder), next_step="name the folder that `dbdyno move` wrote")
        manifest = _read(place)
        if not isinstance(manifest, dict) or manifest.get("version") != VERSION:
            raise MoveError(
                "the job was written by another version of dbdyno",
                where=str(place),
                next_step="use the version of dbdyno that wrote it",
            )
        if not _is_whole(manifest):
            raise _damage_error(place, "plan of a job")
        for chunk in manifest["plan"]["chunks"]:
            if Path(chunk["file"]).is_absolute() or ".." in Path(chunk["file"]).parts:
                raise MoveError(
                    f"names a file outside of its folder: {chunk['file']!r}",
                    where=str(place),
                    next_step="move the table again into another folder",
                )
        return cls(folder, manifest)

    @property
    def plan(self) -> JsonObject:
        """Return the job's plan."""
        plan: JsonObject = self.manifest["plan"]
        return plan

    def refuse_foreign(self) -> None:
        """Refuse to execute a plan that somebody else may have made, because it names a server, SQL and files.

        Raises:
            MoveError: This user did not make the plan's seal.
        """
        if not is_own_plan(self.manifest.get("plan"), self.manifest.get("seal")):
            raise MoveError(
                "the job's plan was not made by this user on this machine, so it is not executed",
                where=str(self.folder),
                next_step="read it with `dbdyno move status` and `verify`; start your own job to move the table",
            )

    def save(self) -> None:
        """Seal the plan and write the manifest."""
        self.manifest["seal"] = seal(self.plan)
        self._write(self.folder / INNER / "manifest.json", self.manifest)

    def begin_attempt(self, how: str, workers: int, memory_bytes: int) -> None:
        """Record that a new attempt begins now, and write the manifest."""
        attempts = self.manifest.setdefault("attempts", [])
        given = {"how": how, "began_ns": time.time_ns(), "workers": workers, "memory_bytes": memory_bytes}
        attempts.append({**given, "phases": []})
        self.save()

    def note_cost(self, sessions: Iterable[Mapping[str, Any]]) -> None:
        """Record what the sessions of this attempt cost the source; the record is written with the next `save`."""
        attempt = len(self.manifest.get("attempts", []))
        self.manifest.setdefault("cost", []).extend({**one, "attempt": attempt} for one in sessions)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Record a phase of the attempt and how it ended; a phase that was killed leaves no record."""
        began_ns, ending = time.time_ns(), DONE
        try:
            yield
        except BaseException as error:
            words = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error).strip()
            ending = (words.splitlines() or [type(error).__name__])[0]
            # The user must see the error itself, even if the note cannot be written.
            with contextlib.suppress(MoveError):
                self._note(name, began_ns, ending)
            raise
        self._note(name, began_ns, ending)

    def _note(self, name: str, began_ns: int, ending: str) -> None:
        attempts = self.manifest.get("attempts")
        if attempts:
            one = {"name": name, "began_ns": began_ns, "ended_ns": time.time_ns(), "ending": ending}
            attempts[-1]["phases"].append(one)
        self.save()

    def record(self, done: Mapping[str, Any]) -> None:
        """Write the record of a finished chunk."""
        self._write(self._place(int(done["number"])), done, durable=self.is_durable)

    def records(self) -> dict[int, MoveRecord]:
        """Return the records of finished chunks by chunk number; a record whose file is missing is left out.

        Raises:
            MoveError: A record is damaged.
        """
        known = {chunk["number"]: chunk for chunk in self.plan["chunks"]}
        found: dict[int, MoveRecord] = {}
        for place in sorted((self.folder / INNER / "chunks").glob("*.json")):
            record = _read(place)
            if not isinstance(record, dict) or not _fits(record, RECORD):
                raise _damage_error(place, "record of a chunk")
            chunk = known.get(record["number"])
            if chunk is not None and not self._is_record_of(record, chunk):
                raise _damage_error(place, "record of this job")
            # Files on a Hadoop file system are checked when the job ends, through Hadoop itself.
            here = [] if chunk is None or self.plan.get("place") else files_of(chunk, record)
            if chunk is not None and all((self.folder / one["file"]).is_file() for one in here):
                found[chunk["number"]] = cast("MoveRecord", record)
        return found

    def sizes(self) -> dict[str, int]:
        """Return the files of the finished chunks with their sizes in bytes."""
        chunks = {chunk["number"]: chunk for chunk in self.plan["chunks"]}
        filed = [one for number, record in self.records().items() for one in files_of(chunks[number], record)]
        return {one["file"]: one["file_bytes"] for one in filed}

    def _is_record_of(self, record: Mapping[str, Any], chunk: Mapping[str, Any]) -> bool:
        instants = len(self.manifest["snapshots"])
        parts = record.get("parts", [])
        if not isinstance(parts, list) or not all(_fits(one, PART) for one in parts):
            return False
        places = [Path(one["file"]) for one in parts]
        if any(place.is_absolute() or ".." in place.parts for place in places):
            return False
        return bool(record["file"] == chunk["file"] and 0 <= record["snapshot"] < instants and record["rows"] >= 0)

    def forget(self, table: int | None = None) -> None:
        """Discard the finished chunks of one table or of all tables: first their records, then their files."""
        chunks = [chunk for chunk in self.plan["chunks"] if table in (None, chunk["table"])]
        for chunk in chunks:
            self._place(chunk["number"]).unlink(missing_ok=True)
        if place := self.plan.get("place"):
            from dbdyno.move.spark.files import Hadoop, chunk_files

            there = Hadoop(place)
            for name in chunk_files(there.sizes(), [chunk["file"] for chunk in chunks]):
                there.delete(name)
            return
        for chunk in chunks:
            if chunk["file"]:
                (self.folder / chunk["file"]).unlink(missing_ok=True)
                for part in self._parts(chunk, Path(chunk["file"]).name):
                    part.unlink(missing_ok=True)

    def forget_chunk(self, number: int) -> None:
        """Discard the record of one chunk whose rows turned out to be missing at the target."""
        self._place(number).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove temporary and unrecorded files that interrupted workers left."""
        for folder in self._folders():
            for left in (*folder.glob(".part-*.parquet.*.tmp"), *folder.glob("*=*/.part-*.parquet.*.tmp")):
                left.unlink(missing_ok=True)
        # A file that an interrupted worker finished without a record would be read along with its replacement.
        done = self.records()
        for chunk in self.plan["chunks"]:
            if chunk["number"] not in done and chunk["file"]:
                for part in self._parts(chunk, Path(chunk["file"]).name):
                    part.unlink(missing_ok=True)

    def _parts(self, chunk: Mapping[str, Any], name: str) -> Iterator[Path]:
        """Yield a chunk's files, which are in folders named by partition values if its table is partitioned."""
        if self.plan["tables"][chunk["table"]].get("partition") is not None:
            yield from (self.folder / chunk["file"]).parent.glob(f"*=*/{name}")

    def make_folders(self) -> None:
        """Create the folders of the tables."""
        try:
            for folder in self._folders():
                if not folder.exists():
                    make_inner_folder(folder)
        except OSError as error:
            raise _cannot(self.folder, error) from None

    def _folders(self) -> set[Path]:
        here = [] if self.plan.get("place") else self.plan["chunks"]
        return {(self.folder / chunk["file"]).parent for chunk in here if chunk["file"]}

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the job's lock, so that no other process works on it meanwhile.

        Raises:
            MoveError: Another process holds the lock.
        """
        try:
            opened = os.open(self.folder / INNER / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise _cannot(self.folder, error) from None
        try:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise MoveError(
                    "another process is working on this job",
                    where=str(self.folder),
                    next_step="wait until that process has ended",
                ) from None
            yield
        finally:
            os.close(opened)

    def is_locked(self) -> bool:
        """Return True if a process works on the job."""
        try:
            with self.locked():
                return False
        except MoveError:
            return True

    def _place(self, number: int) -> Path:
        return self.folder / INNER / "chunks" / f"{number:05}.json"

    def _write(self, place: Path, value: Mapping[str, Any], *, durable: bool = True) -> None:
        try:
            write_atomically(place, json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n", durable=durable)
        except OSError as error:
            raise _cannot(place, error) from None


class ChunkFile(TypedDict):
    """File of a finished chunk: its path in the folder, rows, hash and size in bytes."""

    file: str
    rows: int
    hash: str
    file_bytes: int


def files_of(chunk: Mapping[str, Any], record: Mapping[str, Any]) -> list[ChunkFile]:
    """Return a finished chunk's files with rows and hashes; empty for a job from server to server."""
    parts = record.get("parts") or []
    if parts:
        above = Path(chunk["file"]).parent
        return [cast("ChunkFile", {**one, "file": str(above / one["file"])}) for one in parts]
    partitioned = record["rows"] == 0 and record.get("file_bytes") == 0
    return [] if not chunk["file"] or partitioned else [cast("ChunkFile", {**record, "file": chunk["file"]})]


def _is_whole(manifest: JsonObject) -> bool:
    """Return True if a manifest has every field that is read before its seal is checked."""
    plan, snapshots = manifest.get("plan"), manifest.get("snapshots")
    if not isinstance(plan, dict) or not isinstance(snapshots, list) or not isinstance(manifest.get("status"), str):
        return False
    tables, chunks = plan.get("tables"), plan.get("chunks")
    if not isinstance(tables, list) or not isinstance(chunks, list) or not snapshots:
        return False
    cost = manifest.get("cost", [])
    if not isinstance(cost, list) or not all(_fits(one, COST) and _counts(one) for one in cost):
        return False
    attempts = manifest.get("attempts", [])
    if not isinstance(attempts, list) or not all(_fits(one, ATTEMPT) for one in attempts):
        return False
    if not all(_fits(phase, PHASE) for one in attempts for phase in one["phases"]):
        return False
    return (
        _fits(plan, PLAN)
        # Only a database may have no tables.
        and bool(tables or plan.get("database"))
        and all(_fits(chunk, CHUNK) and 0 <= chunk["table"] < len(tables) for chunk in chunks)
        and all(_fits(table, TABLE) for table in tables)
        and all(_fits(one, SNAPSHOT) for one in snapshots)
    )


def _counts(session: Mapping[str, Any]) -> bool:
    """Return True if all costs of a session are whole numbers."""
    values = [value for name, value in session.items() if name != "waits"]
    return all(type(value) is int for value in (*values, *session["waits"].values()))


def _fits(value: Any, kinds: Mapping[str, type]) -> bool:
    """Return True if the value is an object that has each field with its type."""
    if not isinstance(value, dict) or not all(type(value.get(name)) is kind for name, kind in kinds.items()):
        return False
    return "hash" not in kinds or _HASH.fullmatch(value["hash"]) is not None


def _read(place: Path) -> Any:
    """Return the JSON of a file, which other users may have written; raise `MoveError` if it cannot be read."""
    try:
        return read_json(place)
    except EvidenceError as error:
        raise MoveError(
            error.message, where=error.where, next_step="move the table again into another folder"
        ) from None


def _damage_error(place: Path, what: str) -> MoveError:
    return MoveError(
        f"is damaged: it is not a {what}", where=str(place), next_step="move the table again into another folder"
    )


def _cannot(place: Path, error: Exception) -> MoveError:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return MoveError(
        f"cannot be used: {said}", where=str(place), next_step="check that the folder exists and has free space"
    )
