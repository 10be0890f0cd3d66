r"""Parser of CellCLI's text output: live, through dcli, archived or pasted.

CellCLI prints no header and no types; a file with a header is parsed by `columns.py`. Possible lines:

    \t FC_IO_RQ_R<pad>\t FLASHCACHE\t 1,325,800,847 IO requests      a metric
    cel01: FC_IO_RQ_R<pad>\t FLASHCACHE\t 19,885                     through dcli, line stripped
    FC_IO_RQ_R   FLASHCACHE   19,885 IO requests                     pasted: blanks for tabs
    FL_IO_W  0 IO requests                                           without the object
    CD_IO_LOAD CD_00 1.5 2012-10-12T14:33:45-04:00                   metric history, with its time
    name:<pad>exa1cel01                                              DETAIL
    CELL-01504: Invalid command syntax.                              an error, on stdout

One pattern runs over the whole text for the metrics, so that a hundred thousand lines cost little; the rest is parsed
line by line. Nothing is dropped: lines that cannot be parsed are in `unread`.
"""

from __future__ import annotations

import re
from math import inf

from dbdyno.cells.catalogue import metric
from dbdyno.cells.columns import header_span, read_columns
from dbdyno.cells.details import parse_details
from dbdyno.cells.findings import (
    AMBIGUOUS_NUMBER,
    FOREIGN_NUMBER,
    CellError,
    Listing,
    Reading,
    UnreadLine,
    moment_ns,
    visible,
)
from dbdyno.cells.rows import STATES, TYPES, UNITS, is_disk, row_of

_METRIC = re.compile(
    r"""^[ \t]*+
    (?:(?P<cell>[A-Za-z0-9][\w.-]*+):[ \t]++)?       # dcli's prefix
    (?P<name>[A-Z][A-Z0-9]*+(?:_[A-Z0-9]++)++)[ \t]++
    (?:(?P<object>(?!-?[\d,]+(?:\.\d+)?(?:[ \t\r]|$))\S++)[ \t]++)?
    (?P<value>-?(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?)
    (?:[ \t]+(?P<unit>%|[A-Za-z/][A-Za-z]*(?:/[A-Za-z]+)?(?:[ ]requests)?))?
    (?:[ \t]+(?P<at>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)))?
    [ \t]*\r?$""",
    re.VERBOSE | re.MULTILINE,
)
_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_EITHER = re.compile(r"-?\d{1,3}[.,]\d{3}")
_THREE = re.compile(r"\d{1,3}\.\d{3}")
THREE_DECIMALS = ("MB", "MB/sec", "KB", "KB/sec", "GB")
ODD = TYPES | STATES
_INFINITE = (inf, -inf)
Lines = list[tuple[int, str]]
__all__ = ["CellError", "Listing", "Reading", "UnreadLine", "moment_ns", "read_text", "visible"]


def read_text(text: str, cell: str = "") -> Listing:
    """Parse CellCLI's text; lines below a header are parsed according to its columns.

    Args:
        text: The text.
        cell: Name of the cell for lines without a dcli prefix.
    """
    found = Listing()
    header = header_span(text)
    if header is not None:
        _read_lines(text[: header[0]], cell, found)
        read_columns(text[header[0] :], cell, text.count("\n", 0, header[0]) + 1, found)
        return found
    _read_lines(text, cell, found)
    return found


def _read_lines(text: str, cell: str, listing: Listing) -> None:
    """Add the rows, details and errors of a text without a header to `listing`."""
    rest: list[tuple[int, str]] = []
    line, last = 1, 0
    append, new = listing.readings.append, tuple.__new__  # the constructor of a NamedTuple takes twice as long
    odd: dict[tuple[str, str | None, str | None], bool] = {}
    for match in _METRIC.finditer(text):
        start, end = match.span()
        if start > last:
            line += _keep_rest(text, last, start, line, rest)
        whose, name, item, value, unit, at = match.groups()
        number = float(value.replace(",", ""))
        at_ns = moment_ns(at) if at else None
        key = (name, item, unit)
        if key not in odd:
            odd[key] = _is_odd(*key)
        last = end + 1
        if (
            odd[key]
            or number in _INFINITE
            or (at and at_ns is None)
            or ("." in value and is_ambiguous(value, unit or ""))
        ):
            line += _keep_rest(text, start, end, line, rest)
            continue
        append(new(Reading, (whose or cell, name, item or "", number, unit or "", value, line, at_ns)))
        line += 1
    cut: Lines = []
    if last < len(text):
        _keep_rest(text, last, len(text), line, rest)
    elif last > len(text) and len(listing.readings) > 1:
        _cut(text, listing, cut)
    parse_details([*_rows(rest, cell, listing), *cut], cell, listing)
    if any(entry.why == FOREIGN_NUMBER for entry in listing.unread):
        _leave_out_ambiguous(listing)
    listing.unread.sort(key=lambda entry: entry.line)


def _is_odd(name: str, item: str | None, unit: str | None) -> bool:
    """Return True if a row's words may be in another order, so that each word must be recognised by its form."""
    if (unit and unit not in UNITS) or item in ODD or is_disk(name):
        return True
    return bool(item and _NAME.fullmatch(item) and metric(item).known)


def _rows(rest: Lines, cell: str, listing: Listing) -> Lines:
    """Parse rows whose columns are in another order, and return the lines that are not rows."""
    left = []
    for line, raw in rest:
        words = row_of(raw)
        at_ns = moment_ns(words.at) if words and words.at else None
        if words is None or is_ambiguous(words.value, words.unit) or (words.at and at_ns is None):
            left.append((line, raw))
            continue
        number = float(words.value.replace(",", ""))
        if number in _INFINITE:
            left.append((line, raw))
            continue
        whose = words.cell or cell
        listing.readings.append(Reading(whose, words.name, words.item, number, words.unit, words.value, line, at_ns))
    if len(left) < len(rest):
        listing.readings.sort(key=lambda reading: reading.line)
    return left


def is_ambiguous(value: str, unit: str) -> bool:
    """Return True if a number may be in another language's format, where 365.322 MB means 365 thousand.

    In English a count has no decimals, and three decimals are printed only below 100 and only for megabytes and similar
    units.
    """
    if not _THREE.fullmatch(value):
        return unit == "IO requests" and "." in value and float(value.replace(",", "")) % 1 != 0
    return unit in UNITS and (unit not in THREE_DECIMALS or float(value) > 100)


def _leave_out_ambiguous(listing: Listing) -> None:
    """Leave out ambiguous numbers: if another line has a decimal comma, 12.345 MB may mean 12 or 12 thousand."""
    doubted = [reading for reading in listing.readings if _EITHER.fullmatch(reading.text)]
    listing.unread += [UnreadLine(r.line, f"{r.name} {r.text} {r.unit}".strip(), AMBIGUOUS_NUMBER) for r in doubted]
    listing.readings = [reading for reading in listing.readings if not _EITHER.fullmatch(reading.text)]


def _cut(text: str, listing: Listing, rest: list[tuple[int, str]]) -> None:
    """Leave out an unterminated last line if it lacks the unit that the line before has: digits may be missing."""
    before, reading = listing.readings[-2:]
    unit = metric(reading.name).unit
    if before.unit and unit and reading.unit != unit:
        rest.append((reading.line, text.rpartition("\n")[2]))
        listing.readings.pop()


def _keep_rest(text: str, begin: int, end: int, line: int, rest: list[tuple[int, str]]) -> int:
    """Add lines that are not metrics to `rest` for later parsing, and return the number of lines."""
    lines = text[begin:end].split("\n")
    if text[end - 1 : end] == "\n":
        lines.pop()
    rest.extend((line + at, own) for at, own in enumerate(lines) if own.strip())
    return len(lines)
