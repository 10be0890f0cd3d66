"""PostgreSQL's log in the form of syslog: messages in pieces, each after syslog's own prefix.

    Nov 21 00:59:57 db1 postgres[28]: [3-1] 2026-11-21 00:59:57.437 UTC [28] LOG:  duration: 0.05 ms  plan:
    Nov 21 00:59:57 db1 postgres[28]: [3-2] #011Query Text: select sum(amount) from orders

A piece is a line of the message, or the part of a long line that fits. Each line after the first begins with a tab
(`#011` if syslog escapes it); the rest of a long line does not. Pieces of several sessions are interleaved. The time is
taken from log_line_prefix or, if it has none, from syslog's prefix, provided that this has a year and a time zone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dbdyno.snapshot.plans.entries import LONGEST, Entry, UnreadEntries

PIECE = re.compile(
    rb"(?:<\d{1,3}>)?(?:\d )?"
    rb"(?P<stamp>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.]{8,15}(?:Z|[+-]\d\d:?\d\d))"
    rb" \S{1,255} (?P<who>[^\s\[\]:]{1,64}\[\d{1,10}\]): (?:\[(?P<number>\d{1,12})-(?P<piece>\d{1,9})\] ?)?"
)
"""Beginning of a piece: syslog's own prefix, and PostgreSQL's number of the message and of the piece."""
_SEVERITY = re.compile(rb"(?<![A-Z])(?:DEBUG|INFO|NOTICE|WARNING|ERROR|LOG|FATAL|PANIC):  ")
_FOLLOWS = re.compile(rb"(?<![A-Z])(?:DETAIL|HINT|QUERY|CONTEXT|STATEMENT|LOCATION|BACKTRACE):  ")
_ESCAPED = re.compile(rb"#(0[0-3][0-7])")
_HEAD = 500
SESSIONS_MOST = 1000
"""Largest number of sessions with a pending message; beyond it, the oldest message is considered complete."""
NO_YEAR = "its time has no year: put %m into log_line_prefix, or have syslog write ISO times"


@dataclass
class _Message:
    """A message as read so far.

    Attributes:
        line: Number of its first line.
        stamp: Syslog's time.
        lines: Its lines.
        number: Syslog's number of the message, if it writes one.
        size: Its size in bytes.
        nested: True if a context follows.
        over: True if it is too long to be read.
        after: Lines that follow the message, such as DETAIL and CONTEXT.
    """

    line: int
    stamp: bytes
    lines: list[bytes]
    number: bytes | None
    size: int = 0
    nested: bool = False
    over: bool = False
    after: list[bytes] = field(default_factory=list)


def is_syslog(line: bytes) -> bool:
    """Return True if a line has syslog's prefix."""
    return PIECE.match(line) is not None


Begun = Callable[[bytes, str, int], Entry | None]
"""Function that makes an entry from a message with the server's prefix; it takes the bytes, place and line number."""


def syslog(lines: Iterator[tuple[int, bytes]], name: str, begun: Begun, unread: UnreadEntries) -> Iterator[Entry]:
    """Yield the entries of a log from syslog; `lines` are pairs of line number and bytes."""
    open_: dict[bytes, _Message] = {}
    for number, raw in lines:
        found = PIECE.match(raw)
        if found is None:
            continue  # a line of another program, or cut off
        who = found["who"]
        words = _ESCAPED.sub(lambda escape: bytes([int(escape[1], 8)]), raw[found.end() :].rstrip(b"\r\n"))
        known = open_.get(who)
        if known is None or _begins(known, found, words):
            if known is not None:
                yield from _ended(open_.pop(who), name, begun, unread)
            elif len(open_) >= SESSIONS_MOST:
                yield from _ended(open_.pop(next(iter(open_))), name, begun, unread)
            open_[who] = _Message(number, found["stamp"], [words], found["number"])
        else:
            _add(known, words)
    for known in open_.values():
        yield from _ended(known, name, begun, unread)


def _begins(message: _Message, match: re.Match[bytes], words: bytes) -> bool:
    """Return True if a piece is the first one of another message."""
    if match["number"] is not None or message.number is not None:
        return match["number"] != message.number or match["piece"] == b"1"
    return not words.startswith(b"\t") and _SEVERITY.search(words, 0, _HEAD) is not None


def _add(message: _Message, words: bytes) -> None:
    message.size += len(words)
    if message.size > LONGEST:
        message.over = True
    elif not words.startswith(b"\t") and _FOLLOWS.search(words, 0, _HEAD):
        message.nested = message.nested or b"CONTEXT:  " in words[:_HEAD]
        message.after.append(words)
    elif message.after:
        return  # only the kind of the following lines is used
    elif words.startswith(b"\t"):
        message.lines.append(words)
    else:
        message.lines[-1] += words


def _ended(message: _Message, name: str, begun: Begun, unread: UnreadEntries) -> Iterator[Entry]:
    place = f"{name}:{message.line}"
    if b"duration: " not in message.lines[0]:
        return
    if message.over:
        unread.add(f"it is longer than {LONGEST >> 20} MiB", place)
        return
    first = message.lines[0]
    severity = _SEVERITY.search(first, 0, _HEAD)
    if severity is not None and not re.search(rb"\d\d:\d\d:\d\d|\d{10}\.\d{3}", first[: severity.start()]):
        if b"T" not in message.stamp:
            unread.add(NO_YEAR, place)
            return
        stamp = message.stamp.replace(b"T", b" ").replace(b"Z", b" +00")
        message.lines[0] = re.sub(rb"(?<=\d)([+-]\d\d:?\d\d)$", rb" \1", stamp) + b" " + first
    entry = begun(b"\n".join(message.lines), place, message.line)
    if entry is not None:
        entry.nested = message.nested
        yield entry
