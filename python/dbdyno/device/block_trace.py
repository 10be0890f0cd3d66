"""Readers of block traces: the requests to a device, their times, and their response times where the trace has them.

| form | from | arrival | response |
|---|---|---|---|
| fio iolog, version 2 and 3 | `fio --write_iolog` | from its wait lines, or its time column | none |
| fio latency log | `fio --write_lat_log` with `log_offset=1` | end minus latency | latency |
| blkparse | `blktrace`, then `blkparse` | when the request was issued to the driver (D) | time to completion (C) |
| kernel block tracer | `blk` in current_tracer, with the option blk_classic | the same | the same |
| MSR CSV | the traces of MSR Cambridge in SNIA's repository | its timestamp | its response time |

A latency log has the end of each request only in whole milliseconds, so it does not show which requests overlapped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dbdyno.base.errors import DeviceError
from dbdyno.base.files import CHECK_FILE, os_errors_as

SECTOR = 512
_TICK_NS = 100
"""Unit of Windows timestamps [ns], used in MSR traces."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockTrace:
    """Requests in the order of their arrival, as arrays of equal length.

    Attributes:
        form: Format of the file.
        arrived_ns: Arrival times, relative to the first request [ns].
        is_read: True for a read, False for a write.
        offset_bytes: Offset at which each request begins [bytes].
        size_bytes: Length of each request [bytes].
        response_ns: Response time of each request [ns]; None if the trace has none.
        notes: Sentences about what was left out.
    """

    form: str
    arrived_ns: NDArray[np.int64]
    is_read: NDArray[np.bool_]
    offset_bytes: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    response_ns: NDArray[np.int64] | None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.arrived_ns)

    def part(self, first: int, end: int) -> BlockTrace:
        """Return requests `first` to `end` (excluded), with arrival times relative to the first of them."""
        arrived = self.arrived_ns[first:end]
        return BlockTrace(
            self.form,
            arrived - arrived[:1],
            self.is_read[first:end],
            self.offset_bytes[first:end],
            self.size_bytes[first:end],
            None if self.response_ns is None else self.response_ns[first:end],
            self.notes,
        )

    def faster(self, speed: float) -> BlockTrace:
        """Return the trace with the times between arrivals divided by `speed`, and without response times."""
        if speed == 1.0:
            return self
        arrived = (self.arrived_ns / speed).astype(np.int64)
        return BlockTrace(self.form, arrived, self.is_read, self.offset_bytes, self.size_bytes, None, self.notes)


Row = tuple[int, bool, int, int, int]
"""Arrival [ns], True for a read, offset [bytes], length [bytes], response time [ns] (negative if unknown)."""


def read_block_trace(path: Path) -> BlockTrace:
    """Read a block trace, detecting its format from its first lines.

    Raises:
        DeviceError: The file cannot be read, is in none of the formats, has a line that is not of its format, or has no
            read and no write.
    """
    with (
        os_errors_as(DeviceError, "cannot be read", path, CHECK_FILE),
        path.open(encoding="utf-8", errors="replace") as lines,
    ):
        return _read(path, lines)


def _read(path: Path, lines: Iterator[str]) -> BlockTrace:
    numbered = enumerate(lines, 1)
    head = [line for _, line in zip(range(40), numbered, strict=False)]
    form = next((one for _, text in head for one in FORMATS if one.begins.match(text)), None)
    if form is None:
        raise DeviceError(
            "is not a block trace of a known format",
            where=str(path),
            next_step="give a fio iolog or latency log, the text output of blkparse, or a CSV in the format of "
            "MSR Cambridge",
        )
    notes: list[str] = []
    rows = list(form.rows(_Lines(path, [*head], numbered, notes)))
    if not rows:
        raise DeviceError(
            "contains neither a read nor a write", where=str(path), next_step="give a trace with reads or writes"
        )
    try:
        table = np.array(rows, dtype=np.int64)
    except OverflowError:
        raise DeviceError(
            "has a number of more than 64 bits", where=str(path), next_step="export the trace again"
        ) from None
    if (table[:, 2:4] < (0, 1)).any():
        raise DeviceError(
            "has a request before the beginning of the device, or without a length",
            where=str(path),
            next_step="export the trace again",
        )
    table = table[np.argsort(table[:, 0], kind="stable")]
    known = table[:, 4] >= 0
    if known.any() and not known.all():
        notes.append(f"{int((~known).sum()):,} requests never end in the trace; they are left out.")
        table = table[known]
    return BlockTrace(
        form.name,
        table[:, 0] - table[0, 0],
        table[:, 1] != 0,
        table[:, 2],
        table[:, 3],
        table[:, 4] if known.any() else None,
        tuple(notes),
    )


class _Lines:
    """Numbered lines of a file; an invalid last line is noted as cut off, any other one is an error."""

    def __init__(
        self, path: Path, head: list[tuple[int, str]], rest: Iterator[tuple[int, str]], notes: list[str]
    ) -> None:
        self._path, self._head, self._rest, self.notes = path, head, rest, notes

    def __iter__(self) -> Iterator[tuple[int, str]]:
        yield from self._head
        yield from self._rest

    def bad(self, number: int, text: str) -> None:
        """Raise `DeviceError` for an invalid line, unless it is the last one.

        Raises:
            DeviceError: There are lines after it.
        """
        if next(self._rest, None) is None and number >= self._head[-1][0]:
            self.notes.append(f"Line {number}, the last one, is cut off; it is left out.")
            return
        raise DeviceError(
            f"the line cannot be read: {text.strip()[:80]!r}",
            where=f"{self._path}:{number}",
            next_step="remove the line, or export the trace again",
        )


def _iolog(lines: _Lines) -> Iterator[Row]:
    """Read fio's I/O log: `FILE ACTION OFFSET LENGTH`, preceded by a time in microseconds in version 3."""
    now_ns, version, others = 0, 2, 0
    for number, text in lines:
        words = text.split()
        if not words:
            continue
        if words[:2] == ["fio", "version"]:
            version = int(words[2])
            continue
        try:
            if version >= 3:
                now_ns, words = int(words[0]) * 1_000, words[1:]
            action = words[1]
            if action == "wait":
                now_ns += int(words[2]) * 1_000
            elif action in ("read", "write"):
                yield now_ns, action == "read", int(words[2]), int(words[3]), -1
            elif action in ("sync", "datasync", "trim"):
                others += 1
            elif action not in ("add", "open", "close"):
                raise ValueError
        except (ValueError, IndexError):
            lines.bad(number, text)
    if others:
        lines.notes.append(f"{others:,} flushes and discards take no time on these devices; they are left out.")


def _latency_log(lines: _Lines) -> Iterator[Row]:
    """Read fio's latency log: end [ms], latency [ns], direction (0 read, 1 write), length, offset."""
    for number, text in lines:
        try:
            end_ms, latency_ns, direction, size, *offset = [int(part) for part in text.split(",")[:5]]
        except ValueError:
            lines.bad(number, text)
            continue
        if direction in (0, 1):
            arrived_ns = end_ms * 1_000_000 - latency_ns
            yield arrived_ns, direction == 0, offset[0] if offset else 0, size, latency_ns
    lines.notes.append("Arrivals are known only to the millisecond, so it is not known which requests overlapped.")


def _blkparse(lines: _Lines) -> Iterator[Row]:
    """Read text of blkparse or the kernel's tracer, pairing issues (D) and completions (C) by device and sector."""
    begun: dict[tuple[str, str, str], tuple[int, bool, int, int]] = {}
    for number, text in lines:
        if text.startswith("#"):
            continue
        found = _BLKPARSE.match(text)
        if found is None:
            if text[:1].isspace() or text[:1].isdigit():
                lines.bad(number, text)
            elif text.strip():
                break  # the summary by processor
            continue
        device, seconds, action, what, sector, count = found.groups()
        if action not in ("D", "C") or not {"R", "W"} & set(what) or sector is None or not int(count or 0):
            continue
        whole, _, part = seconds.partition(".")
        now_ns, key = int(whole) * 10**9 + int(part.ljust(9, "0")[:9]), (device, sector, what)
        if action == "D":
            begun[key] = now_ns, "R" in what, int(sector) * SECTOR, int(count) * SECTOR
        elif one := begun.pop(key, None):
            yield *one, now_ns - one[0]
    for one in begun.values():
        yield *one, -1


def _msr(lines: _Lines) -> Iterator[Row]:
    """Read the columns of MSR Cambridge traces: timestamp, host, disk, type, offset, size, response time [100 ns]."""
    begin: int | None = None
    for number, text in lines:
        words = [word.strip() for word in text.split(",")]
        if words[0] == "Timestamp":
            continue
        try:
            stamp, _, _, kind, offset, size, response = words
            is_read = {"read": True, "write": False}[kind.lower()]
            begin = int(stamp) if begin is None else begin
            yield (int(stamp) - begin) * _TICK_NS, is_read, int(offset), int(size), int(response) * _TICK_NS
        except (ValueError, KeyError):
            lines.bad(number, text)


# The kernel's own tracer has no numbers of events.
_BLKPARSE = re.compile(
    r"\s*(\d+,\d+)\s+\d+\s+(?:\d+\s+)?(\d+\.\d+)\s+\d+\s+([A-Z]+)\s+([A-Z]+)(?:\s+(\d+)\s*\+\s*(\d+))?"
)


@dataclass(frozen=True)
class _Format:
    name: str
    begins: re.Pattern[str]
    rows: Callable[[_Lines], Iterator[Row]]


LATENCY_LOG = "fio latency log"
FORMATS: tuple[_Format, ...] = (
    _Format("fio iolog", re.compile(r"fio version [23] iolog"), _iolog),
    _Format("blkparse", _BLKPARSE, _blkparse),
    _Format("kernel block tracer", re.compile("# tracer: blk"), _blkparse),
    _Format("MSR CSV", re.compile(r"(?i)Timestamp,Hostname,DiskNumber|\d{15,},[^,]*,\d+,(?:read|write),"), _msr),
    _Format(LATENCY_LOG, re.compile(r"\d+,\s*\d+,\s*[0-2],\s*\d+"), _latency_log),
)


def columns(trace: BlockTrace) -> tuple[bytes, bytes, bytes, bytes]:
    """Return the trace as columns in the form that the core reads."""

    def words(values: NDArray[Any]) -> bytes:
        return values.astype("<u8").tobytes()

    return (
        words(trace.arrived_ns),
        trace.is_read.astype(np.uint8).tobytes(),
        words(trace.offset_bytes),
        words(trace.size_bytes),
    )
