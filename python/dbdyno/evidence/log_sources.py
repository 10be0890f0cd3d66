"""Server logs whose format, prefix, order and time zone have been recognised."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class LogSource(NamedTuple):
    """A log file.

    Attributes:
        path: Path of the file.
        form: csvlog, jsonlog, json (text in objects of a log service), syslog or text; for MariaDB, slow or general.
        prefix: Pattern of the text before the severity of a line.
        year: Year assumed for times that do not contain one.
    """

    path: Path
    form: str
    prefix: str
    year: int


class ZoneOffset(NamedTuple):
    """UTC offset of a time zone from a given time on; `name` is its abbreviation."""

    from_s: int
    offset_s: int
    name: str


class LogSources(NamedTuple):
    """Log files in the order of their times.

    Attributes:
        files: The files.
        details: Translations of the word DETAIL in the server's languages.
        payloads: Keys under which log services store what the server logged.
        pieces: Pattern of syslog's prefix.
        zone: The log's time zone; empty if it is not known.
        notes: Sentences about files that are not read.
        is_mariadb: True for statements of MariaDB.
    """

    files: Sequence[LogSource]
    details: Sequence[str]
    payloads: Sequence[str]
    pieces: str
    zone: Sequence[ZoneOffset] = ()
    notes: Sequence[str] = ()
    is_mariadb: bool = False
