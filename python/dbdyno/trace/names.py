"""The names that a command on traces is given: an imported run or files, and why none was read.

Apart from `source`, since a profile of files needs nothing of the evidence's machinery.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.base.errors import TraceError

CUT_SHORT = "the file ends inside a record"

if TYPE_CHECKING:
    from dbdyno.evidence.run import Run


def imported(names: Sequence[str]) -> Run | None:
    """The imported run that the names name; None where they name files.

    Raises `TraceError` for a run without a trace, or a run among files.
    """
    folders = [Path(name) for name in names if (Path(name) / "manifest.json").is_file()]
    if not folders:
        return None
    if len(names) > 1:
        raise TraceError(
            "is an imported run among other names",
            where=str(folders[0]),
            next_step="name one imported run, or trace files only",
        )
    from dbdyno.evidence.run import Run
    from dbdyno.evidence.trace_tables import KIND, require_whole

    run = Run.open(folders[0])
    if run.manifest.kind != KIND:
        raise TraceError(
            "is a run, but no imported trace",
            where=str(folders[0]),
            next_step="`dbdyno trace import FILES --out RUN` makes one",
        )
    require_whole(run)
    return run


def nothing_read(names: Sequence[str], refused: Sequence[dict[str, str]]) -> str:
    """Why there is nothing to work with."""
    if not refused:
        return f"no trace file in {', '.join(names)}"
    first = refusal(refused[0])
    return first if len(refused) == 1 else f"none of {len(refused)} files could be read: {first}"


def torn_records(unread: Mapping[str, int]) -> int:
    """How many stretches inside the files could not be read. A file that ends inside a record is still
    being written, most often: that is told and is no failure."""
    return sum(count for reason, count in unread.items() if reason != CUT_SHORT)


def refusal(entry: Mapping[str, str]) -> str:
    """A refused file in a sentence that begins with its path, and the next step."""
    path, sentence = str(entry.get("path") or ""), str(entry.get("sentence") or "")
    whole = sentence if sentence.startswith(f"{path}:") else f"{path}: {sentence}"
    step = entry.get("next_step")
    return whole + (f"\n  next: {step}" if step else "")
