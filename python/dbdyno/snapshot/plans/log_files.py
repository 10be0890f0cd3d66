"""Recognition of server logs before they are read: format, prefix, order and time zone of each file.

    sources = recognize_logs([Path("log/")], prefix=None, zone=None)
    [file.form for file in sources.files]           # csvlog, jsonlog, json, syslog, text; slow, general of MariaDB

Files are in the order of their first times. A file that occurs twice (plain and compressed) is read once, and a note
says so.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.base.errors import SnapshotError
from dbdyno.evidence.log_sources import LogSource, LogSources, ZoneOffset
from dbdyno.snapshot.plans.entries import DETAILS, decode_text
from dbdyno.snapshot.plans.formats import form_of
from dbdyno.snapshot.plans.mariadb_logs import GENERAL, SLOW, first_time, mariadb_form
from dbdyno.snapshot.plans.prefix import STAMP, pattern_of
from dbdyno.snapshot.plans.prefix_guess import guess_pattern
from dbdyno.snapshot.plans.service import PAYLOADS
from dbdyno.snapshot.plans.source import Source, logs_with_places
from dbdyno.snapshot.plans.syslog import PIECE

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_FIRST_TIME = re.compile(rf"{STAMP.replace(' ', '[ T]')}(?:\.\d{{1,6}})?|(?<![\d.])\d{{10}}\.\d{{3}}(?![\d.])")
_SAMPLE = 400
"""Number of lines that are searched for a prefix."""
_HEAD = 4096
"""Number of bytes at the beginning of a file by which duplicates are recognized."""
_FROM, _TO = datetime(1990, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class _Start:
    """A file and the information in its first lines."""

    path: Path
    form: str
    lines: Sequence[str]
    """The first lines as the server wrote them, without syslog's prefix or the JSON of a log service."""
    first: str
    """Text of the first time in the log; if there is none, the file's modification time."""


def recognize_logs(paths: Sequence[Path], *, prefix: str | None, zone: ZoneInfo | None) -> LogSources:
    """Return the recognized logs in files, folders and patterns.

    `prefix` is the server's log_line_prefix for text logs, or None to detect it.

    Raises:
        SnapshotError: A named file cannot be read, the prefix of a text log is not found, or logs are of both
            PostgreSQL and MariaDB.
    """
    notes: list[str] = []
    starts, heads = [], dict[bytes, Path]()
    for path, source in logs_with_places(paths, notes):
        with contextlib.closing(source.stream):
            before = heads.setdefault(source.start[:_HEAD], path)
            if before != path and source.start:
                notes.append(f"{path.name} begins like {before.name}; it was not read again")
                continue
            starts.append(_start(path, source))
    starts = _without_general(_without_twins(starts, notes), notes)
    of_mariadb = [start for start in starts if start.form in (SLOW, GENERAL)]
    if 0 < len(of_mariadb) < len(starts):
        other = next(start for start in starts if start not in of_mariadb)
        raise SnapshotError(
            f"{of_mariadb[0].path.name} is a log of MariaDB, but {other.path.name} is not",
            where=str(other.path.parent),
            next_step="name only the logs of one server",
        )
    starts.sort(key=lambda start: start.first)
    given = None if prefix is None else _given(prefix)
    files = [LogSource(start.path, start.form.lower(), _prefix(start, given), _year(start.path)) for start in starts]
    zones = utc_offsets(zone) if zone else ()
    return LogSources(files, DETAILS.split("|"), PAYLOADS, PIECE.pattern.decode(), zones, notes, bool(of_mariadb))


def _start(path: Path, source: Source) -> _Start:
    raw = [line for line in source.start.split(b"\n")[:_SAMPLE] if line.strip()]
    changed = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(" ")
    texts = [decode_text(line) for line in raw]
    if (own := mariadb_form(texts)) is not None:
        return _Start(path, own, texts, first_time(texts) or changed)
    form = form_of(source.start)
    lines = list(_unwrapped(form, raw))
    times = (found[0].replace("T", " ") for line in lines if (found := _FIRST_TIME.search(line)))
    return _Start(path, form, lines, next(times, changed))


def _unwrapped(form: str, lines: Sequence[bytes]) -> Iterator[str]:
    for line in lines:
        if form == "syslog":
            found = PIECE.match(line)
            if found is not None:
                yield decode_text(line[found.end() :].rstrip())
        elif form == "JSON":
            with contextlib.suppress(ValueError, AttributeError):
                found_object = json.loads(line.strip().removesuffix(b","))
                texts = [text for key in PAYLOADS if isinstance(text := found_object.get(key), str)]
                yield from texts[0].split("\n") if texts else ()
        else:
            yield decode_text(line.rstrip())


def _without_twins(starts: Sequence[_Start], notes: list[str]) -> list[_Start]:
    """Leave out duplicates of a log in another format: `postgresql.log` beside `postgresql.csv`."""
    order = ("csvlog", "jsonlog", "text", "syslog", "JSON", SLOW, GENERAL)
    kept: dict[tuple[Path, str], _Start] = {}
    for start in sorted(starts, key=lambda start: order.index(start.form)):
        stem = start.path.name.removesuffix(".gz").rpartition(".")[0] or start.path.name
        before = kept.setdefault((start.path.parent, stem), start)
        if before is not start and before.form != start.form:
            notes.append(f"{start.path.name} is the log {before.path.name} in another format; it was not read")
        elif before is not start:
            kept[start.path.parent, start.path.name] = start
    return list(kept.values())


def _without_general(starts: Sequence[_Start], notes: list[str]) -> list[_Start]:
    """Leave out general logs beside slow logs, which have the same statements with their durations."""
    if {SLOW, GENERAL} - {start.form for start in starts}:
        return list(starts)
    for start in starts:
        if start.form == GENERAL:
            notes.append(f"{start.path.name} is a general log without durations; it was not read: name the slow log")
    return [start for start in starts if start.form != GENERAL]


def _given(prefix: str) -> str:
    if not re.search(r"%-?\d*[pc]", prefix):
        raise SnapshotError(
            f"the line prefix {prefix!r:.80} has no field for the process",
            next_step="add %p or %c to log_line_prefix, or use a csvlog or jsonlog",
        )
    return pattern_of(prefix)


def _prefix(start: _Start, given: str | None) -> str:
    if start.form in ("csvlog", "jsonlog", SLOW, GENERAL):
        return ""
    found = given if given is not None else guess_pattern(start.lines, is_syslog=start.form == "syslog")
    # A file without any entry is told later, as one that is no log.
    return found if found is not None else pattern_of("%m [%p] ")


def _year(path: Path) -> int:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).year


def utc_offsets(zone: ZoneInfo) -> list[ZoneOffset]:
    """Return the UTC offsets of a time zone from 1990 to 2100, each with the second at which it takes effect."""

    def at(moment: datetime) -> tuple[int, str]:
        local = moment.astimezone(zone)
        return int((local.utcoffset() or timedelta(0)).total_seconds()), local.tzname() or ""

    found = [ZoneOffset(int(_FROM.timestamp()), *at(_FROM))]
    moment, step = _FROM, timedelta(days=7)
    while moment < _TO:
        after = moment + step
        if at(after) != at(moment):
            low, high = moment, after
            while high - low > timedelta(seconds=1):
                middle = low + timedelta(seconds=int((high - low).total_seconds()) // 2)
                low, high = (low, middle) if at(middle) != at(moment) else (middle, high)
            found.append(ZoneOffset(int(high.timestamp()), *at(high)))
        moment = after
    return found
