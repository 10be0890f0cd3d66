"""The stream that a client writes: little-endian records of 48 bytes, some of them followed by a text.

This module imports only the standard library: the built-in clients written in Python use it as well, and imports are
part of their cost. The reader on dbdyno's side, which takes many records at once, is `reader.py`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

VERSION = 1
"""Version of the protocol; a client says which one it speaks."""
MARK = 0xDB
"""Second byte of each record; detects output that is no stream, since UTF-8 text soon has another byte there."""
LAYOUT = struct.Struct("<BBHIIIqqq8s")
LENGTH = LAYOUT.size
TEXT_MOST = 1 << 16

HELLO, READY, CLOSED, TRANSACTION, STATEMENT, END, SAID, FAILED = range(1, 9)
KINDS = {
    HELLO: "hello",
    READY: "ready",
    CLOSED: "closed",
    TRANSACTION: "transaction",
    STATEMENT: "statement",
    END: "end",
    SAID: "said",
    FAILED: "failed",
}
UNKNOWN_ROWS = -1
LOST = "08006"
"""Code of an operation whose connection was lost."""


@dataclass(frozen=True)
class Record:
    """One record of the stream; times are ns of CLOCK_MONOTONIC.

    In an `end` record `rows` is the number of transactions and `statement` the number of connections that were lost and
    opened again; in a `hello` record `statement` is the protocol's version. `vendor` is the engine's error number, or
    0.
    """

    kind: int
    session: int = 0
    slice: int = 0
    statement: int = 0
    started_ns: int = 0
    elapsed_ns: int = 0
    rows: int = UNKNOWN_ROWS
    code: str = ""
    text: str = ""
    vendor: int = 0


def text_of(message: str, **fields: str | None) -> str:
    """Return the text of a `said` record: the error's message, then the fields that the server sent with it.

    The fields are separated by zero bytes, each with PostgreSQL's letter for it.

    >>> text_of("no such table", R="parserOpenTable", n=None)
    'no such table\\x00RparserOpenTable'
    """
    return "\0".join([message, *(f"{letter}{value}" for letter, value in fields.items() if value)])


def pack(record: Record) -> bytes:
    """Return a record as it is written, followed by its text, padded with zero bytes to a whole number of records."""
    text = record.text.encode()[:TEXT_MOST]
    head = LAYOUT.pack(
        record.kind,
        MARK,
        record.session,
        record.slice,
        record.statement,
        len(text),
        record.started_ns,
        record.elapsed_ns,
        record.rows,
        record.code.encode("ascii", "replace")[:5].ljust(6, b"\0") + record.vendor.to_bytes(2, "little"),
    )
    return head + text + bytes(-len(text) % LENGTH)
