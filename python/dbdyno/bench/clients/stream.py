"""The stream that a client writes: records of 48 bytes, little-endian, some of them with a text behind.

This module imports only the standard library: the built-in clients written in Python use it as well, and what they
import is part of their cost. The reader of the other side, which takes many records at once, is `reader.py`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

VERSION = 1
"""Of the protocol; a client says which one it speaks."""
MARK = 0xDB
"""The second byte of each record; no text in UTF-8 has it there by accident for long."""
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
"""The code of an operation whose connection broke."""


@dataclass(frozen=True)
class Record:
    """One record. Times are nanoseconds of CLOCK_MONOTONIC; `rows` of `end` counts transactions, its `statement` the
    connections that were lost and made again; `statement` of `hello` is the protocol's version. `vendor` is the
    engine's own number of an error, 0 where it has none."""

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


def said(message: str, **fields: str | None) -> str:
    """What a record `said` has as its text: the message of an error alone, and behind zero bytes the fields that the
    server sent beside it, by PostgreSQL's letters.

    >>> said("no such table", R="parserOpenTable", n=None)
    'no such table\\x00RparserOpenTable'
    """
    return "\0".join([message, *(f"{letter}{value}" for letter, value in fields.items() if value)])


def packed(record: Record) -> bytes:
    """A record as it is written; its text behind it, with zero bytes up to a whole number of records."""
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
