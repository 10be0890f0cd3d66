"""Readers for the three formats of PostgreSQL's log, which yield the entries with a duration.

- Text (stderr): the lines of an entry after its first begin with a tab; its DETAIL, CONTEXT and STATEMENT follow as
  lines with prefixes of their own.
- csvlog: a record ends where its quotes are closed; if a line within quotes looks like the beginning of a record, the
  record before it was cut off.
- jsonlog: one object per line.

A text log that was sent through syslog is read by `syslog.py`.
"""

from __future__ import annotations

import functools
import io
import json
import re
from collections.abc import Iterator
from typing import Any

from dbdyno.snapshot.plans.entries import (
    CONTEXT,
    FOLLOWS,
    LONGEST,
    MARK,
    PREFIX_MOST,
    BadTimeError,
    Clock,
    Entry,
    UnreadEntries,
    decode_text,
    queryid_of,
)
from dbdyno.snapshot.plans.prefix import Prefix, PrefixParts
from dbdyno.snapshot.plans.service import is_wrapped, unwrap_entries
from dbdyno.snapshot.plans.syslog import is_syslog, syslog

_BLOCK = 1 << 20
_HEAD = 2000
"""Number of bytes at the beginning of a line within which its prefix and severity end."""


class Lines:
    """The lines of a stream, none longer than an entry may be, with the `number` of lines and `bytes` read so far."""

    def __init__(self, stream: io.BufferedReader[Any]) -> None:
        self._stream = stream
        self.number = 0
        self.bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        for line in iter(lambda: self._stream.readline(LONGEST), b""):
            self.bytes += len(line)
            self.number += 1
            yield line

    def blocks(self) -> Iterator[bytes]:
        """Yield the stream in blocks, with an empty one at the end, and count lines."""
        while block := self._stream.read1(_BLOCK):
            self.bytes += len(block)
            self.number += block.count(b"\n")
            yield block
        yield b""


def text_entries(lines: Lines, name: str, prefix: Prefix, clock: Clock, unread: UnreadEntries) -> Iterator[Entry]:
    """Yield the entries of a text log, searching blocks and not lines, because most lines have no duration."""
    buffer, number, skipping = b"", 1, False
    for block in lines.blocks():
        whole = not block
        buffer += block
        if skipping:
            found = _END.search(buffer)
            buffer, skipping = (buffer[found.end() :], False) if found else (buffer[-1:], True)
        at = 0
        while (entry := _next(buffer, at, whole=whole)) is not None:
            start, end, nested, ready = entry
            number += buffer.count(b"\n", at, start)
            at = start
            if not ready:
                break
            raw = buffer[start:end]
            pending = _begun(raw, f"{name}:{number}", number, prefix, clock, unread)
            if pending is not None:
                pending.nested = nested
                yield pending
            number += buffer.count(b"\n", start, end)
            at = end
        if entry is None:  # the rest has no entry yet, but its last line may begin one
            last = buffer.rfind(b"\n", at) + 1
            number += buffer.count(b"\n", at, last)
            at = max(at, last)
        buffer = buffer[at:]
        if len(buffer) > LONGEST:
            unread.add(f"it is longer than {LONGEST >> 20} MiB", f"{name}:{number}")
            number += buffer.count(b"\n")
            buffer, skipping = buffer[-1:], True


_END = re.compile(rb"\n(?!\t)")


def _next(buffer: bytes, at: int, *, whole: bool) -> tuple[int, int, bool, bool] | None:
    """Return the next entry with a duration: start, end, whether it has a context, whether all of it is in the buffer.

    The lines that belong to the entry, such as its context, are included. `whole` says that nothing follows the buffer.
    Returns None if there is no entry.
    """
    while True:
        mark = buffer.find(MARK, at)
        if mark < 0:
            return None
        start = max(buffer.rfind(b"\n", at, mark) + 1, at)
        if buffer[start : start + 1] != b"\t":
            break
        at = buffer.find(b"\n", mark) + 1
        if not at:
            return None
    nested, place, own_end = False, mark, -1
    while True:
        found = _END.search(buffer, place)
        end = len(buffer) if found is None else found.end()
        own_end = end if own_end < 0 else own_end
        head = buffer[end : end + _HEAD]
        if not whole and len(head) < _HEAD and b"\n" not in head:
            return start, own_end, nested, False
        head = head.partition(b"\n")[0]
        if not head or MARK in head or not FOLLOWS.search(head, 0, PREFIX_MOST):
            return start, own_end, nested, True
        nested = nested or bool(CONTEXT.search(head, 0, PREFIX_MOST))
        place = end


def _begun(raw: bytes, place: str, number: int, prefix: Prefix, clock: Clock, unread: UnreadEntries) -> Entry | None:
    line = decode_text(raw.replace(b"\n\t", b"\n").replace(b"\r\n", b"\n")).rstrip("\r\n")
    colon = line.find(":  ", 0, _HEAD)
    if colon < 0 or not line.startswith("duration: ", colon + 3):
        return None  # another message that contains the word
    severity = colon
    while severity and line[severity - 1].isalpha():
        severity -= 1
    before: PrefixParts | None = prefix.read(line[:severity])
    if before is None:
        unread.add("its prefix differs from the others, or has no time", place)
        return None
    try:
        return Entry(
            number,
            clock.read(before.stamp),
            line[colon + 3 :],
            before.queryid,
            False,
            before.database,
        )
    except BadTimeError as error:
        unread.add(str(error), place)
        return None


_RECORD = re.compile(
    rb'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [\w/+:-]{1,31},(?:"(?:[^"]|"")*+")?,(?:"(?:[^"]|"")*+")?,\d*,'
    rb'(?:"[^"]*+")?,[0-9a-f]+\.[0-9a-f]+,\d+,'
)
_FIELD = re.compile(r'(?:"((?:[^"]|"")*+)"|([^,"]*+))(?:,|\Z)')
_STAMP, _DATABASE, _MESSAGE, _CONTEXT_AT, _QUERYID, _LEAST = 0, 2, 13, 18, 25, 22


def csvlog_entries(lines: Lines, name: str, clock: Clock, unread: UnreadEntries) -> Iterator[Entry]:
    """Yield the entries of a csvlog."""
    parts: list[bytes] = []
    size, first, open_quotes = 0, 1, False
    for raw in lines:
        if open_quotes and raw[:1].isdigit() and _RECORD.match(raw[:_HEAD]):
            unread.add("its record is cut off", f"{name}:{first}")
            parts, open_quotes = [], False
        if not open_quotes:
            parts, size, first = [], 0, lines.number
        size += len(raw)
        if size <= LONGEST:
            parts.append(raw)
        open_quotes ^= bool(raw.count(b'"') & 1)
        if not open_quotes:
            yield from _record(parts, size, f"{name}:{first}", first, clock, unread)
            parts = []
    if open_quotes:
        unread.add("its record is cut off", f"{name}:{first}")


def _record(
    parts: list[bytes], size: int, place: str, line: int, clock: Clock, unread: UnreadEntries
) -> Iterator[Entry]:
    if not any(b',"duration: ' in part for part in parts[:1]):
        return
    if size > LONGEST:
        unread.add(f"it is longer than {LONGEST >> 20} MiB", place)
        return
    fields, at, whole = [], 0, decode_text(b"".join(parts)).rstrip("\r\n")
    while at < len(whole) and (found := _FIELD.match(whole, at)) is not None:
        fields.append(found[1].replace('""', '"') if found[1] is not None else found[2])
        at = found.end()
    if at < len(whole) or len(fields) < _LEAST:
        unread.add("its record does not have the columns of csvlog", place)
        return
    try:
        at_us = clock.read(fields[_STAMP])
    except BadTimeError as error:
        unread.add(str(error), place)
        return
    queryid = queryid_of(fields[_QUERYID]) if len(fields) > _QUERYID else None
    if fields[_MESSAGE].startswith("duration: "):
        yield Entry(line, at_us, fields[_MESSAGE], queryid, bool(fields[_CONTEXT_AT]), fields[_DATABASE])


def jsonlog_entries(lines: Lines, name: str, clock: Clock, unread: UnreadEntries) -> Iterator[Entry]:
    """Yield the entries of a jsonlog."""
    for raw in lines:
        if b'"duration: ' not in raw:
            continue
        place = f"{name}:{lines.number}"
        try:
            found: Any = json.loads(decode_text(raw))
            message = found["message"]
            at_us = clock.read(found["timestamp"])
            if isinstance(message, str) and message.startswith("duration: "):
                nested, database = bool(found.get("context")), str(found.get("dbname") or "")
                yield Entry(lines.number, at_us, message, queryid_of(found.get("query_id")), nested, database)
        except BadTimeError as error:
            unread.add(str(error), place)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            unread.add("its line is not a JSON object of jsonlog, or is cut off", place)


def syslog_entries(lines: Lines, name: str, prefix: Prefix, clock: Clock, unread: UnreadEntries) -> Iterator[Entry]:
    """Yield the entries of a text log that was sent through syslog."""
    begun = functools.partial(_begun, prefix=prefix, clock=clock, unread=unread)
    return syslog(((lines.number, line) for line in lines), name, begun, unread)


def service_entries(lines: Lines, name: str, prefix: Prefix, clock: Clock, unread: UnreadEntries) -> Iterator[Entry]:
    """Yield the entries of a text log that a log service stores as JSON."""
    begun = functools.partial(_begun, prefix=prefix, clock=clock, unread=unread)
    return unwrap_entries(((lines.number, line) for line in lines), name, begun, unread)


def form_of(start: bytes) -> str:
    """Return a log's format, recognized by its start: csvlog, jsonlog, JSON (of a log service), syslog or text."""
    lines = [line for line in start.split(b"\n")[:50] if line.strip()]
    if lines and sum(map(is_syslog, lines)) > len(lines) / 2:
        return "syslog"
    if any(is_wrapped(line) for line in lines):
        return "JSON"
    if any(line.startswith(b'{"timestamp":') for line in lines):
        return "jsonlog"
    return "csvlog" if any(_RECORD.match(line) for line in lines) else "text"
