"""What the three formats of PostgreSQL's log have in common: an entry that tells a duration, and what was not read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

LONGEST = 16 << 20
"""Bytes of one entry that are read; a longer one is counted as unread."""
PLACES_MOST = 5
MARK = b"duration: "
"""What begins a message; that of auto_explain is the same whatever `lc_messages`."""
DURATION = re.compile(
    r"duration: (\d{1,15}(?:\.\d{1,3})?) ms(?: {1,2}(plan:|statement: |execute (?:[^\n:]|:(?! ))*+: |parse |bind )|$)"
)

_CONTEXTS = "CONTEXT|ZUSAMMENHANG|CONTEXTO|CONTEXTE|CONTESTO|KONTEXT|КОНТЕКСТ|文脈|კონტექსტი|내용|上下文"
_DETAILS = "DETAIL|DETALLE|DÉTAIL|DETTAGLI|DETALJ|ПОДРОБНОСТИ|ВІДОМОСТІ|詳細|დეტალები|상세정보|详细信息"
"""As PostgreSQL writes them in each language that it has messages of (`lc_messages`), of version 15."""
CONTEXT = re.compile(rf"(?<![A-Z])(?:{_CONTEXTS}) ?:  ".encode())
FOLLOWS = re.compile(rf"(?<![A-Z])(?:{_DETAILS}|HINT|QUERY|{_CONTEXTS}|STATEMENT|LOCATION|BACKTRACE) ?:  ".encode())
PREFIX_MOST = 500
"""Bytes of a line in which its prefix stands."""


@dataclass(slots=True)
class Entry:
    """An entry of the log whose message begins with a duration. `nested`: it has a context, so that a function ran the
    statement and `queryid` is that of the statement around it. `line`: its first, from 1."""

    line: int
    at_us: int
    message: str
    queryid: int | None = None
    nested: bool = False
    database: str = ""


@dataclass
class Unread:
    """What could not be read: how much of it by reason, and where the first of each kind stands."""

    counts: dict[str, int] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, place: str) -> None:
        """One more."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        known = self.places.setdefault(reason, [])
        if len(known) < PLACES_MOST:
            known.append(place)

    def words(self) -> list[str]:
        """A sentence per reason."""
        return [
            f"{count} {'entry was' if count == 1 else 'entries were'} not read: {reason}"
            f" ({', '.join(self.places[reason])}{', …' if count > len(self.places[reason]) else ''})"
            for reason, count in sorted(self.counts.items(), key=lambda item: -item[1])
        ]


class BadTimeError(ValueError):
    """A time that is none; says why."""

    def __init__(self, why: str = "its time is none") -> None:
        super().__init__(why)


NO_ZONE = "its time zone may mean several, or is not known"


_STAMP = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?: ([A-Za-z][\w/+-]{0,30}|[+-]\d\d(?::?\d\d)?))?"
)
_OFFSET = re.compile(r"([+-])(\d\d)(?::?(\d\d))?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """Times of a log as microseconds since 1970. `zone`: what log_timezone is where the log's abbreviations are not
    UTC, GMT or an offset. Raises `BadTimeError`, with `NO_ZONE` where a time's zone is not known."""

    def __init__(self, zone: ZoneInfo | None = None) -> None:
        self.zone = zone
        self._last: tuple[str, str | None, int] = ("", None, 0)

    def read(self, text: str) -> int:
        """The instant of a stamp such as `2026-11-21 00:59:57.437 CET`, or of seconds since 1970 (%n)."""
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


def decoded(raw: bytes) -> str:
    """Text of any encoding: bytes that are no UTF-8 stay apart from each other."""
    return raw.decode("utf-8", "backslashreplace")


def queryid_of(text: object) -> int | None:
    """A query identifier: a signed whole number of 64 bits; None for 0, which stands for none."""
    try:
        value = int(str(text))
    except ValueError:
        return None
    return value if value and -(1 << 63) <= value < 1 << 63 else None
