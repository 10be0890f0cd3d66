"""The folder of a job: what was planned, and what is finished.

    FOLDER/part-00000.parquet ...      the rows (with several tables: a folder per table)
    FOLDER/_dbdyno/manifest.json       source, snapshots, tables with their columns, chunks
    FOLDER/_dbdyno/chunks/00000.json   a record per finished chunk: rows, bytes, hash, file
    FOLDER/_dbdyno/lock                held by whoever works on the job

A job from server to server has no files: its rows stand in staging tables of the target, one for each chunk.

A chunk's file is on the disk under its name before its record is written, and the record is what counts: a kill at
any instant leaves a job whose finished chunks are known. Everything is written aside, synced and renamed. Readers of
Parquet pass over names that begin with an underscore.
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
from dbdyno.base.files import make_folder, make_inner_folder, write_whole
from dbdyno.evidence.files import read_json
from dbdyno.evidence.seal import is_own, seal

PLAN = {"id": str, "source": str}
TABLE = {"schema": str, "name": str}
CHUNK = {"number": int, "table": int, "relation": int, "bytes": int, "file": str}
SNAPSHOT = {"id": str, "at": str}
RECORD = {"number": int, "rows": int, "file_bytes": int, "hash": str, "file": str, "snapshot": int}
PART = {"file": str, "rows": int, "hash": str, "file_bytes": int}
COST = {"looks": int, "waits": dict, "rows": int}
ATTEMPT = {"how": str, "began_ns": int, "workers": int, "memory_bytes": int, "phases": list}
PHASE = {"name": str, "began_ns": int, "ended_ns": int, "ending": str}
"""What is read of each before anything is believed of it."""
_HASH = re.compile(r"[0-9a-f]{1,32}")
DONE = "done"
MODULUS = 1 << 128
"""Of the sums of hashes."""
VERSION = 1
INNER = "_dbdyno"


class Ledger:
    """A job's folder. `manifest` is what `save` writes; its `plan` is sealed: what it says is only done where this user
    made it."""

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder = folder
        self.manifest = manifest

    @classmethod
    def create(cls, folder: Path, manifest: Mapping[str, Any]) -> Ledger:
        """A new job in a folder that is not there yet, or empty. Raises `MoveError`."""
        try:
            if not folder.exists():
                make_folder(folder)
            elif (folder / INNER / "manifest.json").exists():
                raise MoveError(
                    "a job is there already",
                    where=str(folder),
                    next_step=f"`dbdyno move status {folder}`, or name another folder",
                )
            elif not folder.is_dir() or any(folder.iterdir()):
                raise MoveError("is not an empty folder", where=str(folder), next_step="name a new folder")
            make_inner_folder(folder / INNER)
            make_inner_folder(folder / INNER / "chunks")
        except OSError as error:
            raise _cannot(folder, error) from None
        return cls(folder, {"version": VERSION, **manifest})

    def discard(self) -> None:
        """A job that could not begin leaves no folder to trip over."""
        with contextlib.suppress(OSError):
            shutil.rmtree(self.folder / INNER)
            self.folder.rmdir()

    @classmethod
    def open(cls, folder: Path) -> Ledger:
        """The job of a folder. Raises `MoveError` where there is none that can be read."""
        place = folder / INNER / "manifest.json"
        if not place.exists():
            raise MoveError("no job is there", where=str(folder), next_step="name the folder that `dbdyno move` wrote")
        manifest = _read(place)
        if not isinstance(manifest, dict) or manifest.get("version") != VERSION:
            raise MoveError(
                "the job was written by another version of dbdyno", where=str(place), next_step="use that version"
            )
        if not _is_whole(manifest):
            raise _damaged(place, "plan of a job")
        for chunk in manifest["plan"]["chunks"]:
            if Path(chunk["file"]).is_absolute() or ".." in Path(chunk["file"]).parts:
                raise MoveError(f"names a file outside of its folder: {chunk['file']!r}", where=str(place))
        return cls(folder, manifest)

    @property
    def plan(self) -> dict[str, Any]:
        """What is to be done."""
        plan: dict[str, Any] = self.manifest["plan"]
        return plan

    def refuse_foreign(self) -> None:
        """Raises `MoveError` where somebody else may have made the plan: it names a server, SQL and files."""
        if not is_own(self.manifest.get("plan"), self.manifest.get("seal")):
            raise MoveError(
                "this plan was not made here by this user, and is not carried out",
                where=str(self.folder),
                next_step="`status` and `verify` read it; to move the table, begin a job of your own",
            )

    def save(self) -> None:
        """Writes the manifest."""
        self.manifest["seal"] = seal(self.plan)
        self._write(self.folder / INNER / "manifest.json", self.manifest)

    def attempt(self, how: str, workers: int, memory_bytes: int) -> None:
        """Somebody works on the job from now on. It is in the manifest from the next `save` on."""
        attempts = self.manifest.setdefault("attempts", [])
        given = {"how": how, "began_ns": time.time_ns(), "workers": workers, "memory_bytes": memory_bytes}
        attempts.append({**given, "phases": []})

    def cost(self, sessions: Iterable[Mapping[str, Any]]) -> None:
        """What the sessions of this attempt cost the source. It is in the manifest from the next `save` on."""
        attempt = len(self.manifest.get("attempts", []))
        self.manifest.setdefault("cost", []).extend({**one, "attempt": attempt} for one in sessions)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """A part of an attempt, in the manifest once it has ended, with its ending; what a kill ends has none."""
        began_ns, ending = time.time_ns(), DONE
        try:
            yield
        except BaseException as error:
            words = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error).strip()
            ending = (words.splitlines() or [type(error).__name__])[0]
            # The error itself is what the user is to see, whatever becomes of the note.
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
        """A chunk is finished."""
        self._write(self._place(int(done["number"])), done)

    def records(self) -> dict[int, MoveRecord]:
        """The finished chunks by their number; a record whose file is not there does not count."""
        known = {chunk["number"]: chunk for chunk in self.plan["chunks"]}
        found: dict[int, MoveRecord] = {}
        for place in sorted((self.folder / INNER / "chunks").glob("*.json")):
            record = _read(place)
            if not isinstance(record, dict) or not _fits(record, RECORD):
                raise _damaged(place, "record of a chunk")
            chunk = known.get(record["number"])
            if chunk is not None and not self._is_record_of(record, chunk):
                raise _damaged(place, "record of this job")
            # Files on a Hadoop file system are looked at when the job ends, by its own means.
            here = [] if chunk is None or self.plan.get("place") else files_of(chunk, record)
            if chunk is not None and all((self.folder / one["file"]).is_file() for one in here):
                found[chunk["number"]] = cast("MoveRecord", record)
        return found

    def sizes(self) -> dict[str, int]:
        """The files of the finished chunks, with their bytes."""
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
        """Takes back what was finished: the records first, then the files."""
        chunks = [chunk for chunk in self.plan["chunks"] if table in (None, chunk["table"])]
        for chunk in chunks:
            self._place(chunk["number"]).unlink(missing_ok=True)
        if place := self.plan.get("place"):
            from dbdyno.move.spark.files import Hadoop, of_chunks

            there = Hadoop(place)
            for name in of_chunks(there.sizes(), [chunk["file"] for chunk in chunks]):
                there.delete(name)
            return
        for chunk in chunks:
            if chunk["file"]:
                (self.folder / chunk["file"]).unlink(missing_ok=True)
                for part in self._parts(chunk, Path(chunk["file"]).name):
                    part.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Removes what killed workers left aside."""
        for folder in self._folders():
            for left in (*folder.glob(".part-*.parquet.*.tmp"), *folder.glob("*=*/.part-*.parquet.*.tmp")):
                left.unlink(missing_ok=True)
        # What a killed worker finished without a record would be read beside what is written anew.
        done = self.records()
        for chunk in self.plan["chunks"]:
            if chunk["number"] not in done and chunk["file"]:
                for part in self._parts(chunk, Path(chunk["file"]).name):
                    part.unlink(missing_ok=True)

    def _parts(self, chunk: Mapping[str, Any], name: str) -> Iterator[Path]:
        """The files of a chunk in the folders of values, where its table has such."""
        if self.plan["tables"][chunk["table"]].get("partition") is not None:
            yield from (self.folder / chunk["file"]).parent.glob(f"*=*/{name}")

    def make_folders(self) -> None:
        """The folders of the tables."""
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
    def held(self) -> Iterator[None]:
        """Nobody else works on the job meanwhile. Raises `MoveError` where somebody does."""
        try:
            opened = os.open(self.folder / INNER / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise _cannot(self.folder, error) from None
        try:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise MoveError(
                    "another process works on this job", where=str(self.folder), next_step="wait until it has ended"
                ) from None
            yield
        finally:
            os.close(opened)

    def is_held(self) -> bool:
        """Whether somebody works on it."""
        try:
            with self.held():
                return False
        except MoveError:
            return True

    def _place(self, number: int) -> Path:
        return self.folder / INNER / "chunks" / f"{number:05}.json"

    def _write(self, place: Path, value: Mapping[str, Any]) -> None:
        try:
            write_whole(place, json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n", durable=True)
        except OSError as error:
            raise _cannot(place, error) from None


class Filed(TypedDict):
    """A file of a finished chunk."""

    file: str
    rows: int
    hash: str
    file_bytes: int


def files_of(chunk: Mapping[str, Any], record: Mapping[str, Any]) -> list[Filed]:
    """The files of a finished chunk, each with its rows and their hash; none from server to server."""
    parts = record.get("parts") or []
    if parts:
        above = Path(chunk["file"]).parent
        return [cast("Filed", {**one, "file": str(above / one["file"])}) for one in parts]
    partitioned = record["rows"] == 0 and record.get("file_bytes") == 0
    return [] if not chunk["file"] or partitioned else [cast("Filed", {**record, "file": chunk["file"]})]


def _is_whole(manifest: dict[str, Any]) -> bool:
    """Whether a manifest has what is read of it before its seal is asked for."""
    plan, snapshots = manifest.get("plan"), manifest.get("snapshots")
    if not isinstance(plan, dict) or not isinstance(snapshots, list) or not isinstance(manifest.get("status"), str):
        return False
    tables, chunks = plan.get("tables"), plan.get("chunks")
    if not isinstance(tables, list) or not isinstance(chunks, list) or not tables or not snapshots:
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
        and all(_fits(chunk, CHUNK) and 0 <= chunk["table"] < len(tables) for chunk in chunks)
        and all(_fits(table, TABLE) for table in tables)
        and all(_fits(one, SNAPSHOT) for one in snapshots)
    )


def _counts(session: Mapping[str, Any]) -> bool:
    """Whether all that a session cost is numbers."""
    values = [value for name, value in session.items() if name != "waits"]
    return all(type(value) is int for value in (*values, *session["waits"].values()))


def _fits(value: Any, kinds: Mapping[str, type]) -> bool:
    """Whether a value is an object that has these, each of its kind."""
    if not isinstance(value, dict) or not all(type(value.get(name)) is kind for name, kind in kinds.items()):
        return False
    return "hash" not in kinds or _HASH.fullmatch(value["hash"]) is not None


def _read(place: Path) -> Any:
    """The JSON of a file, which may come from anybody. Raises `MoveError`."""
    try:
        return read_json(place)
    except EvidenceError as error:
        raise MoveError(error.message, where=error.where, next_step="move the table again, elsewhere") from None


def _damaged(place: Path, what: str) -> MoveError:
    return MoveError(f"is damaged: it is no {what}", where=str(place), next_step="move the table again, elsewhere")


def _cannot(place: Path, error: Exception) -> MoveError:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return MoveError(f"cannot be used: {said}", where=str(place), next_step="see that the folder exists and has room")
