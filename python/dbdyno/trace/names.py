"""Names passed to commands on traces: an imported run or files, and the reason if nothing could be read.

Separate from `source`, because a profile of files needs none of the code for evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.base.errors import TraceError

TORN_END = "the file ends inside a record"

if TYPE_CHECKING:
    from dbdyno.evidence.run import Run


def imported_run(names: Sequence[str]) -> Run | None:
    """Return the imported run that the names refer to, or None if they are files.

    Raises:
        TraceError: the run is not a trace, or a run is named together with files.
        EvidenceError: the import did not finish.
    """
    folders = [Path(name) for name in names if (Path(name) / "manifest.json").is_file()]
    if not folders:
        return None
    if len(names) > 1:
        raise TraceError(
            "is an imported run, but other names are given, too: expected one imported run, or only trace files",
            where=str(folders[0]),
            next_step="name one imported run, or only trace files",
        )
    from dbdyno.evidence.run import Run
    from dbdyno.evidence.trace_tables import KIND, require_complete

    run = Run.open(folders[0])
    if run.manifest.kind != KIND:
        raise TraceError(
            "is a run folder, but not one of an imported trace",
            where=str(folders[0]),
            next_step="make one with `dbdyno trace import FILES --out RUN`",
        )
    require_complete(run)
    return run


def nothing_read_reason(names: Sequence[str], refused: Sequence[dict[str, str]]) -> str:
    """Return the reason why nothing could be read."""
    if not refused:
        return f"no trace file in {', '.join(names)}"
    first = refusal(refused[0])
    return first if len(refused) == 1 else f"none of {len(refused)} files could be read: {first}"


def torn_records(unread: Mapping[str, int]) -> int:
    """Return the number of places inside the files that could not be read.

    A file that ends inside a record is usually still being written; it gets a warning and does not count.
    """
    return sum(count for reason, count in unread.items() if reason != TORN_END)


def refusal(entry: Mapping[str, str]) -> str:
    """Return a sentence about a refused file, starting with its path, and the next step."""
    path, sentence = str(entry.get("path") or ""), str(entry.get("sentence") or "")
    whole = sentence if sentence.startswith(f"{path}:") else f"{path}: {sentence}"
    step = entry.get("next_step")
    return whole + (f"\n  next: {step}" if step else "")
