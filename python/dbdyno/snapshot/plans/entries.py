"""Parts common to the three formats of PostgreSQL's log: entries with a duration, and counts of unread entries."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

LONGEST = 16 << 20
"""Size in bytes above which an entry is not read but counted as unread."""
PLACES_MOST = 5
MARK = b"duration: "
"""Beginning of a message with a duration; auto_explain's is the same for any `lc_messages`."""
DURATION = re.compile(
    r"duration: (\d{1,15}(?:\.\d{1,3})?) ms(?: {1,2}(plan:|statement: |execute (?:[^\n:]|:(?! ))*+: |parse |bind )|$)"
)

_CONTEXTS = "CONTEXT|ZUSAMMENHANG|CONTEXTO|CONTEXTE|CONTESTO|KONTEXT|КОНТЕКСТ|文脈|კონტექსტი|내용|上下文"
DETAILS = "DETAIL|DETALLE|DÉTAIL|DETTAGLI|DETALJ|ПОДРОБНОСТИ|ВІДОМОСТІ|詳細|დეტალები|상세정보|详细信息"
"""Words for CONTEXT and DETAIL in each language of PostgreSQL 15's messages (`lc_messages`)."""
CONTEXT = re.compile(rf"(?<![A-Z])(?:{_CONTEXTS}) ?:  ".encode())
FOLLOWS = re.compile(rf"(?<![A-Z])(?:{DETAILS}|HINT|QUERY|{_CONTEXTS}|STATEMENT|LOCATION|BACKTRACE) ?:  ".encode())
PREFIX_MOST = 500
"""Number of bytes at the beginning of a line within which its prefix ends."""


@dataclass(slots=True)
class Entry:
    """A log entry whose message begins with a duration.

    Attributes:
        line: Number of its first line, from 1.
        at_us: Time of the entry in microseconds since 1970.
        message: The message.
        queryid: The statement's identifier, or None; for a nested entry that of the statement around it.
        nested: True if the entry has a context, so a function ran the statement.
        database: The database, empty if not known.
    """

    line: int
    at_us: int
    message: str
    queryid: int | None = None
    nested: bool = False
    database: str = ""


@dataclass
class UnreadEntries:
    """Entries that could not be read: their number by reason, and the places of the first ones."""

    counts: dict[str, int] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, place: str) -> None:
        """Count an unread entry."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        known = self.places.setdefault(reason, [])
        if len(known) < PLACES_MOST:
            known.append(place)

    def sentences(self) -> list[str]:
        """Return a sentence for each reason, the most frequent first."""
        return [
            f"{count} {'entry was' if count == 1 else 'entries were'} not read: {reason}"
            f" ({', '.join(self.places[reason])}{', …' if count > len(self.places[reason]) else ''})"
            for reason, count in sorted(self.counts.items(), key=lambda item: -item[1])
        ]


class BadTimeError(ValueError):
    """Error for a text that is not a valid time; the message says why."""

    def __init__(self, why: str = "its time is not valid") -> None:
        super().__init__(why)


NO_ZONE = "its time zone is ambiguous or unknown"


_STAMP = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?: ([A-Za-z][\w/+-]{0,30}|[+-]\d\d(?::?\d\d)?))?"
)
_OFFSET = re.compile(r"([+-])(\d\d)(?::?(\d\d))?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """Conversion of times in a log to microseconds since 1970.

    `zone` is the server's log_timezone; it is needed unless the log has UTC, GMT or numeric offsets.
    """

    def __init__(self, zone: ZoneInfo | None = None) -> None:
        self.zone = zone
        self._last: tuple[str, str | None, int] = ("", None, 0)

    def read(self, text: str) -> int:
        """Return the instant of a stamp in µs since 1970.

        The stamp is a text such as `2026-11-21 00:59:57.437 CET`, or seconds since 1970 (%n).

        Raises:
            BadTimeError: The text is not a time; with `NO_ZONE` as message if its time zone is not known.
        """
        found = _STAMP.fullmatch(text)
        if found is None:
            return self._epoch(text)
        second, fraction, name = found.groups()
        if (second, name) != self._last[:2]:
            self._last = (second, name, self._second(second, name))
        return self._last[2] + (int(fraction.ljust(6, "0")) if fraction else 0)

    def _epoch(self, text: str) -> int:
        if not re.fullmatch(r"\d{9,10}(?:\.\d{1,6})?", text):
            raise BadTimeError
        return round(float(text) * 1e6)

    def _second(self, second: str, name: str | None) -> int:
        try:
            local = datetime.fromisoformat(second)
        except ValueError as error:
            raise BadTimeError from error
        if not 1970 <= local.year < 2200:
            raise BadTimeError
        aware = local.replace(tzinfo=UTC) - self._offset(local, name)
        return int((aware - _EPOCH) / timedelta(microseconds=1))

    def _offset(self, local: datetime, name: str | None) -> timedelta:
        if name in ("UTC", "GMT", "Z", "UCT"):
            return timedelta(0)
        signed = _OFFSET.fullmatch(name or "")
        if signed:
            size = timedelta(hours=int(signed[2]), minutes=int(signed[3] or 0))
            return size if signed[1] == "+" else -size
        if self.zone is None:
            raise BadTimeError(NO_ZONE)
        there = local.replace(tzinfo=self.zone)
        later = there.replace(fold=1)
        chosen = later if there.tzname() != name and later.tzname() == name else there
        return chosen.utcoffset() or timedelta(0)


def decode_text(raw: bytes) -> str:
    """Return bytes of any encoding as text; bytes that are not UTF-8 are escaped, so they stay distinct."""
    return raw.decode("utf-8", "backslashreplace")


def queryid_of(text: object) -> int | None:
    """Return a query identifier, a signed 64-bit integer; None if it is 0 (which means none) or invalid."""
    try:
        value = int(str(text))
    except ValueError:
        return None
    return value if value and -(1 << 63) <= value < 1 << 63 else None
