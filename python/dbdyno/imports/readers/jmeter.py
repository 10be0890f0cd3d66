"""Reader of JMeter's JTL files in CSV: each sample is an operation, each label a statement."""

from __future__ import annotations

import csv
import io
import re

from dbdyno.base.errors import EvidenceError
from dbdyno.imports.contents import NS, Contents, TimedOperations

NEEDED = ("timeStamp", "elapsed", "label")
SQLSTATE = re.compile(r"[0-9A-Z]{5}")
FIELD_MOST = 1 << 20
AS_CSV = "set jmeter.save.saveservice.output_format=csv and jmeter.save.saveservice.print_field_names=true"


def matches(head: str) -> bool:
    """Return True if the first line has the column names of a JTL file, or the text is a JTL file in XML."""
    first = head.split("\n", 1)[0]
    return all(name in first for name in NEEDED) or "<testResults" in head[:400]


def read(text: str, where: str) -> Contents:
    """Return the samples of the file as timed operations.

    Raises:
        EvidenceError: The file is XML, or no sample can be read.
    """
    if text.lstrip().startswith("<"):
        raise EvidenceError("is a JTL file in XML", where=where, next_step=AS_CSV)
    csv.field_size_limit(FIELD_MOST)
    first = text.split("\n", 1)[0]
    delimiter = next((sign for sign in ",\t;|" if sign in first), ",")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    columns = {name.strip(): at for at, name in enumerate(next(rows, []))}
    if missing := [name for name in NEEDED if name not in columns]:
        raise EvidenceError(f"has no column {', '.join(missing)}", where=where, next_step=AS_CSV)
    samples, unread = _Samples(columns), []
    while True:
        try:
            row = next(rows, None)
            if row is None:
                break
            if row:
                samples.add(row)
        except (ValueError, csv.Error):
            unread.append(rows.line_num)
    if not samples.arm.elapsed_ns:
        raise EvidenceError("has no readable sample", where=where, next_step=AS_CSV)
    samples.arm.sessions = max(1, min(samples.threads_most or len(samples.threads), 65535))
    labels = len(set(samples.arm.statement))
    return Contents(
        "JMeter",
        benchmark="samples",
        settings={"threads": samples.arm.sessions, "labels": labels},
        timed=[samples.arm],
        unread=unread,
        ended_ns=max(map(sum, zip(samples.arm.started_ns, samples.arm.elapsed_ns, strict=True))),
    )


class _Samples:
    """Collector of the samples of a file."""

    def __init__(self, columns: dict[str, int]) -> None:
        self.columns = columns
        self.arm = TimedOperations("samples")
        self.threads: dict[str, int] = {}
        self.labels: dict[str, str] = {}
        self.threads_most = 0

    def add(self, row: list[str]) -> None:
        """Add a sample.

        Raises:
            ValueError: A number cannot be read, or the line has another number of columns than the first, because it is
                incomplete.
        """
        columns = self.columns
        if len(row) != len(columns) or "\n" in row[columns["label"]]:
            raise ValueError("is not a complete line")
        started_ns, elapsed_ns = (int(row[columns[name]]) * NS["ms"] for name in ("timeStamp", "elapsed"))
        label = row[columns["label"]][:60]
        thread = row[columns["threadName"]] if "threadName" in columns else ""
        good = "success" not in columns or row[columns["success"]].strip().lower() == "true"
        code = "" if good or "responseCode" not in columns else row[columns["responseCode"]]
        alive = int(row[columns["allThreads"]]) if "allThreads" in columns else 0
        session = self.threads.setdefault(thread, len(self.threads)) % 65536
        label = self.labels.setdefault(label, label)
        self.arm.add(started_ns, elapsed_ns, session=session, statement=label, error=None if good else _error(code))
        self.threads_most = max(self.threads_most, alive)


def _error(code: str) -> str:
    """Return a response code as five characters: an SQLSTATE as it is, an HTTP status as `H0500`, others as `OTHER`."""
    word = (code.split() or [""])[0]
    if SQLSTATE.fullmatch(word):
        return word
    return f"H{int(word):04d}" if word.isascii() and word.isdigit() and len(word) <= 4 else "OTHER"
