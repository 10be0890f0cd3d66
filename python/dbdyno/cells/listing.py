r"""What CellCLI printed, as text: live, through dcli, archived, pasted.

CellCLI prints no header and no types. What can stand there:

    \t FC_IO_RQ_R<pad>\t FLASHCACHE\t 1,325,800,847 IO requests      a metric
    cel01: FC_IO_RQ_R<pad>\t FLASHCACHE\t 19,885                     through dcli, line stripped
    FC_IO_RQ_R   FLASHCACHE   19,885 IO requests                     pasted: blanks for tabs
    FL_IO_W  0 IO requests                                           without the object
    CD_IO_LOAD CD_00 1.5 2012-10-12T14:33:45-04:00                   of the history
    name:<pad>exa1cel01                                              DETAIL
    CELL-01504: Invalid command syntax.                              an error, on stdout

One pattern runs over the whole text for the metrics, so that a hundred thousand lines cost little;
what it leaves is looked at line by line. Nothing is dropped: what is not understood is `unread`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from math import isinf
from typing import NamedTuple

from dbdyno.cells.catalogue import metric

_METRIC = re.compile(
    r"""^[ \t]*
    (?:(?P<cell>[A-Za-z0-9][\w.-]*):[ \t]+)?         # dcli's prefix
    (?P<name>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)[ \t]+
    (?:(?P<object>(?!-?[\d,]+(?:\.\d+)?(?:[ \t\r]|$))\S+)[ \t]+)?
    (?P<value>-?(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?)
    (?:[ \t]+(?P<unit>%|[A-Za-z/][A-Za-z]*(?:/[A-Za-z]+)?(?:[ ]requests)?))?
    (?:[ \t]+(?P<at>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)))?
    [ \t]*\r?$""",
    re.VERBOSE | re.MULTILINE,
)
_ERROR = re.compile(r"(CELL-\d{5}):\s*(.*)")
_PREFIX = re.compile(r"([A-Za-z0-9][\w.-]*):[ \t]*(.*)")
_DETAIL = re.compile(r"([A-Za-z]\w*):(?:[ \t]+(.*))?")
_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_TYPES = frozenset(("Cumulative", "Instantaneous", "Rate", "Transition"))


class Reading(NamedTuple):
    """One value of one metric. `cell` is '' where the text does not say; `text` is the value as
    printed; `at_ns` its collection time where printed, since 1970."""

    cell: str
    name: str
    object: str
    value: float
    unit: str
    text: str
    line: int
    at_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """A line that was not understood."""

    line: int
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class CellError:
    """An error that CellCLI printed: CELL-nnnnn and its words."""

    cell: str
    code: str
    message: str
    line: int


@dataclass
class Listing:
    """All that was found in a text. `details` are the objects of DETAIL listings: attribute to
    text, with the cell under the key '' where it is known; `started_ns` when the cell service of
    a cell began, since 1970, where the text says so; `own_name` what the cell calls itself, where a document says so."""

    readings: list[Reading] = field(default_factory=list)
    started_ns: dict[str, int] = field(default_factory=dict)
    details: list[dict[str, str]] = field(default_factory=list)
    errors: list[CellError] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    own_name: str = ""


def visible(text: str) -> str:
    """A text of a cell without what a terminal would obey or no file could hold: each control
    character but tab and line end, and each half of a pair, becomes U+FFFD."""
    return _UNSEEN.sub("\ufffd", text)


def read_text(text: str, cell: str = "") -> Listing:
    """Reads a text of CellCLI; `cell` is whose it is, where no dcli prefix tells."""
    found = Listing()
    rest: list[tuple[int, str]] = []
    line, last = 1, 0
    append = found.readings.append
    for match in _METRIC.finditer(text):
        start = match.start()
        if start > last:
            line += _between(text, last, start, line, rest)
        whose, name, item, value, unit, at = match.groups()
        number = float(value.replace(",", ""))
        at_ns = moment_ns(at) if at else None
        broken = unit == "IO requests" and "." in value and number % 1
        if isinf(number) or broken or (at and at_ns is None):
            line += _between(text, start, match.end(), line, rest)
            last = match.end() + 1
            continue
        if item in _TYPES:  # `attributes name, metricType, metricValue`
            item = ""
        append(
            Reading(
                whose or cell,
                name,
                item or "",
                number,
                unit or "",
                value,
                line,
                at_ns,
            )
        )
        last = match.end() + 1
        line += 1
    if last < len(text):
        _between(text, last, len(text), line, rest)
    elif last > len(text) and len(found.readings) > 1:
        _cut(text, found, rest)
    _others(rest, cell, found)
    return found


def _cut(text: str, found: Listing, rest: list[tuple[int, str]]) -> None:
    """A last line that has no end, nor its unit where the one before has, may have lost digits."""
    before, reading = found.readings[-2:]
    unit = metric(reading.name).unit
    if before.unit and unit and reading.unit != unit:
        rest.append((reading.line, text.rpartition("\n")[2]))
        found.readings.pop()


def _between(text: str, begin: int, end: int, line: int, rest: list[tuple[int, str]]) -> int:
    """Keeps the lines that are no metrics; returns how many there were."""
    lines = text[begin:end].split("\n")
    if text[end - 1 : end] == "\n":
        lines.pop()
    rest.extend((line + at, own) for at, own in enumerate(lines) if own.strip())
    return len(lines)


def _others(rest: list[tuple[int, str]], cell: str, found: Listing) -> None:
    """Errors, details and their continuations; the rest is unread."""
    block: dict[str, str] | None = None
    attribute, last, indent = "", -1, 0
    cells = _prefixes(rest)
    blocks: list[tuple[dict[str, str], list[tuple[int, str]]]] = []
    for line, raw in rest:
        text = raw.rstrip("\r").strip()
        whose, body = _split(text, cell, cells)
        if body.startswith("CellCLI>"):  # a pasted prompt and what was typed behind it
            block = None
            continue
        error = _ERROR.fullmatch(body)
        if error:
            found.errors.append(CellError(whose, error[1], error[2], line))
            block = None
            continue
        detail = _DETAIL.fullmatch(body)
        column = len(raw) - len(raw.lstrip())
        new = block is None or line != last + 1 or block.get("", cell) != whose
        deeper = not new and column > indent
        if detail and not deeper:
            key, value = detail[1], (detail[2] or "").strip()
            if new or block is None or key in block:
                block = {"": whose} if whose else {}
                blocks.append((block, []))
            block[key] = value
            attribute, indent = key, column
        elif block is not None and not new and attribute:
            block[attribute] = f"{block[attribute]}\n{body}".strip()
        else:
            found.unread.append(Unread(line, raw.rstrip("\r")[:200], _why(body)))
            block = None
            continue
        last = line
        blocks[-1][1].append((line, raw))
    for attributes, lines in blocks:
        # One line 'word: text' alone is no object: 'ssh: connect to host ...'.
        if len(attributes.keys() - {""}) > 1 or "name" in attributes:
            found.details.append(attributes)
            continue
        found.unread += [Unread(at, raw.rstrip("\r")[:200], _why(raw.strip())) for at, raw in lines]
    found.unread.sort(key=lambda entry: entry.line)


def _prefixes(rest: list[tuple[int, str]]) -> set[str]:
    """The cells that dcli names: words before a colon behind which an attribute or an error stands.
    A value such as 'error: x' of one attribute looks the same, but comes alone: a cell's name is
    seen on two lines in a row, or before an error, or has a digit, a dot or a dash in it."""
    cells: set[str] = set()
    before = ""
    for _, raw in rest:
        match = _PREFIX.fullmatch(raw.rstrip("\r").strip())
        head = ""
        if match and not _ERROR.match(raw.strip()):
            inner = _DETAIL.fullmatch(match[2])
            if _ERROR.match(match[2]):
                cells.add(match[1])
            elif inner:
                head = match[1]
                if head == before or re.search(r"[\d.-]", head):
                    cells.add(head)
        before = head
    return cells


def _split(text: str, cell: str, cells: set[str]) -> tuple[str, str]:
    """dcli's prefix and the rest."""
    match = _PREFIX.fullmatch(text)
    return (match[1], match[2]) if match and match[1] in cells else (cell, text)


def _why(body: str) -> str:
    match = re.match(r"(?:[\w.-]+:[ \t]+)?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?=[ \t]|$)", body)
    if match is None:
        return "neither a metric, nor an attribute, nor an error"
    rest = body[match.end() :]
    if re.search(r"\d{4}-\d\d-\d\dT\S*$", rest):
        return "a metric whose time of collection cannot be read"
    if re.search(r"[ \t]\d+(?:[.' \u00a0]\d{3})+\b|\b0,\d|\d,\d{1,2}\b", rest):
        return "a number whose separators are not those of CellCLI in English (1,325.8)"
    return "a metric without a value that can be read"


def moment_ns(text: str) -> int | None:
    """A time such as 2012-10-12T14:33:45-04:00, with its zone, in ns since 1970; else None."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None or not 1970 < moment.year < 2200:
        return None
    return round(moment.timestamp() * 1e6) * 1000
