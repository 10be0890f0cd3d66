"""Loading of pieces of files by workers of the Rust core; each piece has a statement of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dbdyno import _core
from dbdyno.base.core_types import MoveFailure, MoveFinishedChunk
from dbdyno.base.errors import MoveError
from dbdyno.move.loading.pieces import CSV, Piece
from dbdyno.move.reading.progress import FileProgress
from dbdyno.move.reading.run import LOOK_S, NEXT_STEPS, JobOptions

Record = Callable[[MoveFinishedChunk], None]


def run_workers(
    server: Mapping[str, Any],
    pieces: Mapping[int, Piece],
    statements: Mapping[int, str],
    options: JobOptions,
    record: Record,
    *,
    placed: bool,
    repair: str,
) -> None:
    """Load pieces of files.

    Args:
        server: The connection and the statements that begin a session.
        pieces: The pieces of files, by number.
        statements: The statement that receives each piece, by number.
        options: Number of workers, memory and other limits.
        record: Called with the record of each piece once it is loaded.
        placed: Also load each row's file number and row number, so that rejected rows can be named.
        repair: Advice about a value that the server refused.

    Raises:
        MoveError: A piece could not be loaded.
    """
    csv = any(one.path.suffix == CSV for one in pieces.values())
    mover = _core.MoveJob(
        {
            **server,  # type: ignore[typeddict-item]
            "tables": [{"columns": []}],
            "chunks": [
                {
                    "number": number,
                    "table": 0,
                    "sql": statements[number],
                    "path": str(one.path),
                    "load": True,
                    "raw": csv,
                    "groups": one.groups,
                    "rows_before": one.rows_before,
                    "place": one.file if placed and not csv else None,
                }
                for number, one in pieces.items()
            ],
            "workers": options.workers,
            "memory_bytes": options.memory_bytes,
            "rate_bytes_per_s": options.rate_bytes_per_s,
            "rejects": placed,
        }
    )
    shown, left = FileProgress(options.progress, list(pieces.values())), set(pieces)

    def count(chunk: MoveFinishedChunk) -> None:
        record(chunk)
        left.remove(chunk["number"])

    failed = wait_for(mover, count, lambda: shown.show(*mover.progress(), whole=not left))
    if failed is not None:
        raise failure_of(failed, {number: one.path.name for number, one in pieces.items()}, repair)


def wait_for(mover: _core.MoveJob, record: Record, show: Callable[[], None] = lambda: None) -> MoveFailure | None:
    """Wait for all chunks of a job, and return the first failure, or None; `show` is called after each event."""
    failed: MoveFailure | None = None
    try:
        while (event := mover.next(LOOK_S)) is not None:
            if "done" in event:
                record(event["done"])
            elif "failed" in event and (failed is None or failed["kind"] == "stopped"):
                failed = event["failed"]
            show()
    finally:
        mover.stop()
    return failed


def failure_of(failed: MoveFailure, names: Mapping[int, str], repair: str) -> MoveError:
    """Return the error for a failed chunk; `repair` advises what to do about a value that the server refused."""
    step = {**NEXT_STEPS, "refused": repair}.get(failed["kind"], "")
    step = step.replace("run `dbdyno move resume`", "run the same command again")
    if failed.get("code") == "23514" and "no partition of relation" in failed["message"]:
        step = "create a partition for such rows, or write them to a file with --rejects"
    chunk = failed.get("chunk")
    where = names[chunk] if chunk is not None else None
    return MoveError(f"{failed['message']}; the table was not changed", where=where, next_step=step or None)
