"""Readers of the outputs of benchmark programs, one file per program; to add one, add a file and a row here.

A reader has `matches(head)`, which decides from the first 64 KB of a file whether the program wrote it, and
`read(text, where)`, which returns its contents.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from dbdyno.base.errors import EvidenceError
from dbdyno.base.files import os_errors_as
from dbdyno.imports.contents import FILE, Contents

READERS = {
    "hyperfine": "JSON of --export-json",
    "benchbase": "the .summary.json of a run",
    "hammerdb": "JSON of `jobs ID result` or `jobs ID timing`, or a log with TEST RESULT",
    "k6": "JSON of --summary-export or of handleSummary",
    "jmeter": "a JTL file in CSV with its header",
    "pgbench": "what it prints, with or without --progress",
    "pgbench_log": "the files of --log, with or without --aggregate-interval",
    "sysbench": "what it prints, with or without --report-interval",
}
"""The readers with what each reads, in the order in which they are tried."""
HEAD = 65536
LARGEST = 4 << 30


class Reader(Protocol):
    """Interface of a reader's module."""

    def matches(self, head: str) -> bool:
        """Return True if a file that begins with `head` is an output of the program."""

    def read(self, text: str, where: str) -> Contents:
        """Parse the text of an output file; `where` names the file in errors."""


def read_file(path: Path) -> Contents:
    """Read an output of any known program.

    Raises:
        EvidenceError: The file cannot be read, or is not the output of a known program.
    """
    with os_errors_as(EvidenceError, "cannot be read", path, "check the path and the permissions of the file"):
        if path.stat().st_size > LARGEST:
            raise EvidenceError(
                "is larger than 4 GB",
                where=str(path),
                next_step="split the file; several files can be imported as one run",
            )
        text = path.read_bytes().decode("utf-8", errors="replace").removeprefix("\ufeff")
        ended_ns = path.stat().st_mtime_ns
    found = read_text(text, str(path))
    if found.ended_ns is None:
        found.ended_ns, found.dated_by = ended_ns, FILE
    return found


def read_text(text: str, where: str) -> Contents:
    """Return the content of an output.

    Raises:
        EvidenceError: The text is not the output of a known program, or holds no result.
    """
    head = text[:HEAD]
    for name in READERS:
        reader = cast("Reader", import_module(f"dbdyno.imports.readers.{name}"))
        if reader.matches(head):
            return reader.read(text, where)
    forms = "; ".join(f"{name.replace('_log', '')}: {form}" for name, form in READERS.items())
    raise EvidenceError(
        "is not the output of a benchmark program that dbdyno reads", where=where, next_step=f"give one of: {forms}"
    )
