"""Reader of a client's stream, which checks everything, because the client is a foreign program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dbdyno.base.errors import Error
from dbdyno.bench.clients import stream

RECORD = np.dtype(
    [
        ("kind", "u1"),
        ("mark", "u1"),
        ("session", "<u2"),
        ("slice", "<u4"),
        ("statement", "<u4"),
        ("length", "<u4"),
        ("started_ns", "<i8"),
        ("elapsed_ns", "<i8"),
        ("rows", "<i8"),
        ("code", "S5"),
        ("spare", "u1"),
        ("vendor", "<u2"),
    ]
)
Records: TypeAlias = NDArray[Any]
"""Array of operations, with rows of type `RECORD`."""
SHOWN_MOST = 80


class StreamError(Error):
    """Error for a client's stream that violates the protocol."""


class StreamReader:
    """Incremental parser of the stream; operations are returned in bulk, every other record individually."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.read = 0

    def feed(self, data: bytes) -> Iterator[Records | stream.Record]:
        """Yield the records that are complete after `data` has arrived.

        Raises:
            StreamError: The bytes are not a valid record.
        """
        self.buffer += data
        while len(self.buffer) >= stream.LENGTH:
            whole = len(self.buffer) // stream.LENGTH
            records = np.frombuffer(bytes(self.buffer[: whole * stream.LENGTH]), RECORD)
            plain = (records["kind"] == stream.TRANSACTION) | (records["kind"] == stream.STATEMENT)
            plain &= (records["mark"] == stream.MARK) & (records["length"] == 0)
            count = int(np.argmin(plain)) if not plain.all() else whole
            if count:
                self._drop(count)
                yield records[:count]
                continue
            record = self._record(records[0])
            if record is None:
                return
            yield record

    def describe_leftover(self) -> str:
        """Return a description of bytes that have arrived but form no complete record; empty if there are none."""
        if not self.buffer:
            return ""
        whole = len(self.buffer) // stream.LENGTH
        what = f"{whole} more records" if whole else f"{len(self.buffer)} bytes that are not a complete record"
        return f"{what}{_text_of(bytes(self.buffer))}"

    def _record(self, given: Any) -> stream.Record | None:
        """Return the first record with its text, or None until all of the text has arrived."""
        kind, length = int(given["kind"]), int(given["length"])
        if int(given["mark"]) != stream.MARK or kind not in stream.KINDS:
            raise StreamError(
                f"wrote an invalid record, number {self.read + 1}{_text_of(bytes(self.buffer))}",
                next_step=f"write only records of {stream.LENGTH} bytes to stdout, and all text to stderr",
            )
        if length > stream.TEXT_MOST:
            raise StreamError(f"wrote a {stream.KINDS[kind]} record with a text of {length:,} bytes")
        size = stream.LENGTH + length + -length % stream.LENGTH
        if len(self.buffer) < size:
            return None
        text = bytes(self.buffer[stream.LENGTH : stream.LENGTH + length]).decode(errors="replace")
        self._drop(size // stream.LENGTH)
        code = bytes(given["code"]).decode("ascii", "replace")
        names = ("session", "slice", "statement", "started_ns", "elapsed_ns", "rows", "vendor")
        session, number, statement, started, elapsed, rows, vendor = (int(given[name]) for name in names)
        return stream.Record(kind, session, number, statement, started, elapsed, rows, code, text, vendor)

    def _drop(self, count: int) -> None:
        del self.buffer[: count * stream.LENGTH]
        self.read += count


def _text_of(data: bytes) -> str:
    """Return the text contained in bytes, for an error."""
    data = data[:SHOWN_MOST].partition(b"\0")[0]  # after a text there is another record
    text = "".join(char if char.isprintable() else " " for char in data.decode(errors="replace")).strip()
    plain = sum(char.isascii() for char in text)
    return f": {text!r}" if text and plain > len(text) * 3 // 4 else ""


def refuse_impossible_records(records: Records, end: stream.Record, request: SliceRequest) -> None:
    """Raise `StreamError` if the operations of a slice cannot be true.

    Raises:
        StreamError: Values, times or counts are impossible or contradict each other.
    """
    for name, wrong in _lies(records, request):
        if wrong.any():
            raise StreamError(f"record {int(np.argmax(wrong)) + 1} of the slice {name}")
    if request.sent_ns > end.started_ns or end.elapsed_ns < 0 or end.started_ns + end.elapsed_ns > request.heard_ns:
        raise StreamError("the slice has times outside its own duration: expected times of CLOCK_MONOTONIC")
    count = int((records["kind"] == stream.TRANSACTION).sum())
    if end.rows != count:
        raise StreamError(f"the slice's end record reports {end.rows:,} transactions, but {count:,} were recorded")
    if request.transactions is not None and count != request.transactions:
        raise StreamError(f"the slice has {count:,} transactions, but {request.transactions:,} were requested")
    _refuse_outside(records, end)
    _refuse_overlaps(records)
    _refuse_strays(records)


class SliceRequest:
    """The request for a slice: its sessions, statements and times, with which a client's records must agree."""

    def __init__(self, number: int, sessions: int, statements: int, scripts: int, transactions: int | None) -> None:
        self.number, self.sessions, self.transactions = number, sessions, transactions
        self.statements, self.scripts = statements, scripts
        self.sent_ns = self.heard_ns = 0


def _lies(records: Records, request: SliceRequest) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    started, elapsed = records["started_ns"], records["elapsed_ns"]
    scripts = records["kind"] == stream.TRANSACTION
    yield f"names a slice other than {request.number}", records["slice"] != request.number
    yield f"names a session numbered {request.sessions} or higher", records["session"] >= request.sessions
    known = np.where(scripts, request.scripts, request.statements)
    yield "names a statement or script that does not exist", records["statement"] >= known
    yield "took less than no time", elapsed < 0
    yield "started before the slice was requested: is its clock CLOCK_MONOTONIC?", started < request.sent_ns
    yield (
        "ended after its report arrived: is its clock CLOCK_MONOTONIC?",
        (elapsed > request.heard_ns) | (started > request.heard_ns - np.maximum(elapsed, 0)),
    )
    yield "has a negative number of rows", records["rows"] < stream.UNKNOWN_ROWS
    codes = np.unique(records["code"])
    wrong = [code for code in codes if code and not (len(code) == 5 and code.isalnum())]
    yield (
        "has an error code that is not five letters and digits",
        np.isin(records["code"], wrong) | (records["spare"] != 0),
    )
    yield "has an error number but no SQLSTATE", (records["vendor"] != 0) & (records["code"] == b"")


def _refuse_outside(records: Records, end: stream.Record) -> None:
    """Raise `StreamError` unless all operations are within the times of the slice's end record."""
    started, until = records["started_ns"], records["started_ns"] + records["elapsed_ns"]
    wrong = (started < end.started_ns) | (until > end.started_ns + end.elapsed_ns)
    if wrong.any():
        raise StreamError(f"record {int(np.argmax(wrong)) + 1} is outside the times in the slice's end record")


def _refuse_strays(records: Records) -> None:
    """Raise `StreamError` unless each statement is within its transaction and is recorded before the transaction."""
    own = records[np.argsort(records["session"], kind="stable")]
    is_script = own["kind"] == stream.TRANSACTION
    inner, scripts = own[~is_script], own[is_script]
    if not len(inner):
        return
    at = np.searchsorted(np.flatnonzero(is_script), np.flatnonzero(~is_script))
    if (at == len(scripts)).any() or (scripts["session"][at] != inner["session"]).any():
        raise StreamError("the slice has a statement without its transaction")
    outer = scripts[at]
    ends, limits = inner["started_ns"] + inner["elapsed_ns"], outer["started_ns"] + outer["elapsed_ns"]
    if ((inner["started_ns"] < outer["started_ns"]) | (ends > limits)).any():
        raise StreamError("the slice has a statement that began before its transaction, or ended after it")


def _refuse_overlaps(records: Records) -> None:
    """Raise `StreamError` unless the operations of each session are sequential and its transactions in order."""
    for kind, word in ((stream.TRANSACTION, "transaction"), (stream.STATEMENT, "statement")):
        own = records[records["kind"] == kind]
        own = own[np.argsort(own["session"], kind="stable")]
        same = own["session"][1:] == own["session"][:-1]
        ends = own["started_ns"][:-1] + own["elapsed_ns"][:-1]
        if (same & (own["started_ns"][1:] < ends)).any():
            raise StreamError(f"times go backwards: a {word} began before the previous one in its session had ended")
