"""Files that are loaded: finding them, reading their schemas, and checking them against the records of their job."""

from __future__ import annotations

import contextlib
import csv
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from dbdyno import _core
from dbdyno.base.core_types import FileColumn, MoveCount, MoveReject
from dbdyno.base.errors import MoveError
from dbdyno.move.ledger.folder import INNER, ChunkFile, Ledger
from dbdyno.move.ledger.folder import files_of as parts_of
from dbdyno.move.loading.pieces import CSV
from dbdyno.move.loading.rejects import Rejects
from dbdyno.move.loading.request import LoadRequest


def files_of(folder: Path) -> tuple[list[Path], dict[str, ChunkFile] | None]:
    """Return the Parquet files of a folder with their job's records about them, or a single file without records.

    Raises:
        MoveError: The folder has no Parquet files, or its job is not complete.
    """
    if not folder.is_dir():
        return [folder], None
    files = sorted(folder.glob("*.parquet"))
    records: dict[str, ChunkFile] | None = None
    for place in (folder, folder.parent):
        if not (place / INNER / "manifest.json").exists():
            continue
        ledger = Ledger.open(place)
        if ledger.manifest["status"] != "complete":
            raise MoveError(
                "the job that writes these files is not complete",
                where=str(place),
                next_step=f"run `dbdyno move resume {place} --source DSN`",
            )
        found, chunks = ledger.records(), {chunk["number"]: chunk for chunk in ledger.plan["chunks"]}
        own = {
            str(place / one["file"]): one
            for number, record in found.items()
            for one in parts_of(chunks[number], record)
        }
        records = {path: record for path, record in own.items() if folder in Path(path).parents}
        lost = [chunk["file"] for number, chunk in chunks.items() if number not in found]
        if lost:
            raise MoveError("is missing", where=lost[0], next_step="restore the file, or move the table again")
        files = [Path(path) for path in sorted(records)]
        break
    if not files:
        raise MoveError(
            "contains no Parquet files",
            where=str(folder),
            next_step="name the folder of one table's files (part-*.parquet)",
        )
    return files, records


def describe_files(files: Sequence[Path]) -> list[tuple[list[FileColumn], int | None]]:
    """Return the columns and the number of rows (None if unknown) of each file; all files must have the same columns.

    Raises:
        MoveError: A file cannot be read, or its columns differ.
    """
    if files[0].suffix == CSV:
        return [(_header(files[0]), None)]
    found = [_describe(path) for path in files]
    first = found[0][0]
    for path, (columns, _) in zip(files, found, strict=True):
        if columns != first:
            raise MoveError(
                f"does not have the same columns as {files[0].name}",
                where=str(path),
                next_step="load the files one by one",
            )
    return found


def _describe(path: Path) -> tuple[list[FileColumn], int | None]:
    try:
        return _core.move_describe(path)
    except MoveError as error:
        step = error.next_step or "give a complete Parquet or Arrow IPC file"
        raise MoveError(error.message, where=error.where, next_step=step) from None


def _header(path: Path) -> list[FileColumn]:
    """Return the columns of a CSV from its header line; all are text, which the server parses by the table's types."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            names = next(csv.reader(file), [])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise MoveError(f"cannot be read: {error}", where=str(path), next_step="give a CSV file in UTF-8") from None
    twice = next((name for name in names if names.count(name) > 1), None)
    if not names or twice is not None or "" in names:
        raise MoveError(
            f"two columns are named {twice!r}" if twice else "has no header with a name for each column",
            where=f"{path}, line 1",
            next_step="name the columns of the table in the first line",
        )
    return [{"name": name, "arrow": "csv", "holds": "text", "pg_type": None} for name in names]


@contextlib.contextmanager
def spool(stream: IO[bytes]) -> Iterator[Path]:
    """Copy Arrow IPC from a pipe to a temporary file, so that it can be read twice and a broken pipe fails early.

    Raises:
        MoveError: An error inside the block, with the file's name replaced by "stdin".
    """
    with tempfile.NamedTemporaryFile(prefix="dbdyno-move-", suffix=".arrow") as file:
        shutil.copyfileobj(stream, file, 1 << 20)
        file.flush()
        try:
            yield Path(file.name)
        except MoveError as error:
            message, where = error.message.replace(file.name, "stdin"), error.where
            where = where.replace(file.name, "stdin") if where else None
            raise MoveError(message, where=where, next_step=error.next_step) from None


def rejects_of(load_request: LoadRequest, files: Sequence[Path]) -> Rejects | None:
    """Return the collector of rejected rows, or None if rows are not to be rejected.

    Raises:
        MoveError: The reject file exists, or its folder does not.
    """
    if load_request.rejects is None:
        return None
    if load_request.rejects.exists():
        raise MoveError(
            "already exists", where=str(load_request.rejects), next_step="name a new file for rejected rows"
        )
    if not load_request.rejects.absolute().parent.is_dir():
        raise MoveError(
            "its folder does not exist", where=str(load_request.rejects), next_step="create the folder first"
        )
    return Rejects(load_request.rejects, load_request.rejects_most, files)


def add_rejects(rejects: Rejects, file: int, rows: Iterable[MoveReject]) -> None:
    """Add rows of a file that could not be staged to the rejects."""
    for one in rows:
        rejects.add(file, one["row"], f"column {one['column']}: {one['reason']}", None, None)


def check_against_records(
    files: Sequence[Path], counts: Sequence[MoveCount], records: dict[str, ChunkFile] | None
) -> None:
    """Check each file's rows and hash against the job's records, if there are records.

    Raises:
        MoveError: A file contains other rows than recorded.
    """
    for path, one in zip(files, counts, strict=True):
        record = (records or {}).get(str(path))
        if record is not None and (record["rows"], record["hash"]) != (one["rows"], one["hash"]):
            raise MoveError(
                "does not contain the rows that its job wrote; the table was not changed",
                where=str(path),
                next_step="move the table into files again",
            )


def refuse_unstaged(done: Sequence[Mapping[str, Any]]) -> None:
    """Check that all rows were staged, because otherwise the staged rows cannot be compared with the files by hash.

    Raises:
        MoveError: Rows were rejected before they were staged.
    """
    if any(one["refused"] for one in done):
        raise MoveError(
            "some rows were rejected, and the hash of the files covers all rows, so the loaded rows cannot be verified",
            where="--verify",
            next_step="repair the rejected rows, or leave --verify out; the table was not changed",
        )
