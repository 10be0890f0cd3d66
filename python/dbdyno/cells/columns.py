r"""Listings whose first line names their columns, such as the files in which users keep metric history.

    Cell;metricType;DateTime;name;objectname;value;unit
    cel01;Cumulative;2026-01-05T10:00:00+01:00;FL_IO_W;FLASHLOG;1.234;IO requests

    time                       cell   name     object    value
    2026-01-05T10:00:00+01:00  cel01  FL_IO_W  FLASHLOG  1,234 IO requests

The header defines the columns in any order; columns whose names are not in `ROLES` are skipped. Fields are separated by
`;`, `,`, `|`, a tab or blanks, and may be quoted. The number format is derived from all numbers together: a number with
both separators, or a number that can only be a decimal, decides. If there is no such number, 1.234 is a whole number
for a counter; for any other metric it is reported and not used. A unit is one of CellCLI's; a unit in another language
is replaced by the unit in the metric's definition. A time without a zone is interpreted as UTC.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dbdyno.cells.catalogue import metric
from dbdyno.cells.findings import AMBIGUOUS_NUMBER, Listing, Reading, UnreadLine, moment_ns
from dbdyno.cells.rows import UNITS

ROLES = {
    "name": ("name", "metric", "metricname"),
    "object": ("objectname", "metricobjectname", "object"),
    "value": ("value", "metricvalue"),
    "unit": ("unit", "units", "metricunit"),
    "cell": ("cell", "cellname", "cellsrv", "storagecell"),
    "time": ("datetime", "time", "collectiontime", "timestamp", "collected"),
    "date": ("date",),
}
"""Accepted names for each role of a column, regardless of case, underscores and blanks."""
OTHERS = ("metrictype", "type", "objecttype", "metricobjecttype", "alertstate", "description", "#", "no", "seq")
_ROLE = {word: role for role, words in ROLES.items() for word in words} | dict.fromkeys(OTHERS, "")
_DELIMITERS = ";|\t,"
_HEADER = re.compile(r"^(?=[^\n]*value)(?=[^\n]*(?:name|metric))[^\n]*$", re.IGNORECASE | re.MULTILINE)
_WITHIN = 1 << 16
"""Number of characters at the start of a text within which a header line is looked for."""
_PREFIX = re.compile(r"\A([A-Za-z0-9][\w.-]*):[ \t]+(?=\S)")
_NUMBER = re.compile(r"([+-]?[\d.,' \u00a0\u202f]*\d(?:[eE][+-]?\d+)?)\s*(.*)", re.DOTALL)
_BLANKS = re.compile(r"[' \u00a0\u202f]")
_DAY, _CLOCK = re.compile(r"\d{4}-\d\d-\d\d"), re.compile(r"\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
NO_VALUE = "a row without the value or the name that the header requires"
NO_TIME = "a row whose time cannot be read: write it as 2026-01-05T10:00:00+01:00"
TWICE = "a header that names one or more columns twice: remove the repeated names"


@dataclass(frozen=True, slots=True)
class Header:
    """Columns of a listing: the role of each (empty if skipped), and the delimiter (empty for blanks)."""

    roles: tuple[str, ...]
    delimiter: str

    def fields(self, line: str) -> list[str] | None:
        """Return the fields of a row, one per column, or None if the row does not have one field per column."""
        if self.delimiter:
            found = _split(line, self.delimiter)
            more, at = len(found) - len(self.roles), self.roles.index("value")
            if more > 0 and self.delimiter == ",":  # an unquoted comma inside the number
                found[at : at + more + 1] = [",".join(found[at : at + more + 1])]
            return found if len(found) == len(self.roles) else None
        return self._split_aligned(line)

    def _split_aligned(self, line: str) -> list[str] | None:
        """Return fields separated by blanks; only a value may contain blanks, before its unit or within a number."""
        for gap in (r"\t+", r"[ \t]{2,}"):
            found = [one.strip() for one in re.split(gap, line.strip())]
            if len(found) == len(self.roles):
                return found
        words = line.split()
        for at in range(len(words) - 1):
            if _DAY.fullmatch(words[at]) and _CLOCK.fullmatch(words[at + 1]):
                words[at : at + 2] = [f"{words[at]}T{words[at + 1]}"]
                break
        at, behind = self.roles.index("value"), len(self.roles) - 1 - self.roles.index("value")
        if len(words) < len(self.roles):
            return None
        end = len(words) - behind
        return [*words[:at], " ".join(words[at:end]), *words[end:]]


def header_of(line: str) -> Header | None:
    """Return the header that a line contains, or None if the line is no header.

    A header names at least the metric and the value, and at least half of its words are known.
    """
    line = _PREFIX.sub("", line.strip().lstrip("\ufeff"), count=1)
    delimiter = next((one for one in _DELIMITERS if line.count(one) >= 1), "")
    words = _split(line, delimiter) if delimiter else line.split()
    if delimiter == "\t" and "" in words:
        delimiter, words = "", line.split()
    plain = [re.sub(r"[\s_-]", "", word).strip("\"'").casefold() for word in words]
    roles = tuple(_ROLE.get(word, "") for word in plain)
    known = sum(word in _ROLE for word in plain)
    if "name" not in roles or "value" not in roles or 2 * known < len(words):
        return None
    return Header(roles, delimiter)


def _split(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line, quoted or not; a single field if the quotes are not valid."""
    try:
        [found] = csv.reader([line.replace("\r", " ")], delimiter=delimiter, skipinitialspace=True)
    except (csv.Error, ValueError):
        return [line]
    return [one.strip() for one in found]


def header_span(text: str) -> tuple[int, int] | None:
    """Return start and end of the first header line, or None if the text has none."""
    for match in _HEADER.finditer(text, 0, min(len(text), _WITHIN)):
        if header_of(match[0]) is not None:
            return match.start(), match.end()
    return None


def read_columns(text: str, cell: str, first_line: int, listing: Listing) -> None:
    """Parse a text whose first line is a header and add the results to `listing`; further headers may follow."""
    rows: list[tuple[int, str, dict[str, str]]] = []
    header: Header | None = None
    for at, raw in enumerate(text.split("\n"), first_line):
        line = raw.rstrip("\r")
        if not line.strip():
            continue
        if (other := header_of(line)) is not None:
            header = other
            if any(role and header.roles.count(role) > 1 for role in header.roles):
                listing.unread.append(UnreadLine(at, line[:200], TWICE))
                return
            continue
        assert header is not None
        row = _row(header, line, cell)
        if row is None:
            listing.unread.append(UnreadLine(at, line[:200], NO_VALUE))
        else:
            rows.append((at, line, row))
    mark = decimal_mark([row["value"] for _, _, row in rows])
    for at, line, row in rows:
        made = _reading(at, row, mark)
        if isinstance(made, Reading):
            listing.readings.append(made)
        else:
            listing.unread.append(UnreadLine(at, line[:200], made))
    listing.unread.sort(key=lambda one: one.line)


def _row(header: Header, line: str, cell: str) -> dict[str, str] | None:
    """Return a row's fields by their role, or None if it has no name or value."""
    prefix = _PREFIX.match(line) if "cell" not in header.roles else None
    fields = header.fields(line[prefix.end() :] if prefix else line)
    if fields is None:
        return None
    row = {role: field for role, field in zip(header.roles, fields, strict=True) if role}
    if not row["name"] or not row["value"]:
        return None
    return row | {"cell": row.get("cell") or (prefix[1] if prefix else cell)}


def decimal_mark(values: Sequence[str]) -> str:
    """Return the decimal separator of the numbers: '.' or ','; '' if no number shows it, '?' if numbers disagree."""
    marks = set()
    for value in values:
        match = _NUMBER.match(value.strip())
        number = _BLANKS.sub("", match[1]) if match else ""
        marks |= set(_decimal_separator(number))
    return marks.pop() if len(marks) == 1 else "" if not marks else "?"


def _decimal_separator(number: str) -> Iterator[str]:
    """Yield the decimal separator of a number if only one separator is possible."""
    mantissa = number.lower().partition("e")[0]
    last = max(mantissa.rfind("."), mantissa.rfind(","))
    if last < 0:
        return
    mark, other = mantissa[last], ",."[mantissa[last] == ","]
    behind = len(mantissa) - last - 1
    if other in mantissa:
        yield mark
    elif mantissa.count(mark) > 1:
        yield other
    elif behind != 3 or mantissa.lstrip("+-").startswith("0"):
        yield mark


def _reading(line: int, row: dict[str, str], mark: str) -> Reading | str:
    """Return the reading of a row, or the reason why there is none."""
    match = _NUMBER.fullmatch(row["value"])
    if match is None:
        return NO_VALUE
    name, number = row["name"], _BLANKS.sub("", match[1])
    own = metric(name)
    unit = _unit(row.get("unit") or match[2].strip(), own.unit, own.known)
    is_count = unit in ("IO requests", "requests") or (own.kind == "counter" and not own.unit)
    value = _value(number, mark, is_count=is_count)
    if value is None:
        return AMBIGUOUS_NUMBER
    if unit is None:
        return "an unknown metric with a unit that CellCLI does not use"
    at_ns = _moment(row)
    if at_ns is None and (row.get("time") or row.get("date")):
        return NO_TIME
    return Reading(row["cell"], name, row.get("object", ""), value, unit, match[1].strip(), line, at_ns)


def _unit(given: str, own: str, known: bool) -> str | None:
    """Return the unit if it is one of CellCLI's, else the unit in the metric's definition; None if there is neither."""
    if given in UNITS or not given:
        return given or own
    return own if known else None


def _value(number: str, mark: str, *, is_count: bool) -> float | None:
    """Return the number with the listing's decimal separator, or None if it is ambiguous."""
    if mark in ("", "?") and ("." in number or "," in number):
        if not is_count or not re.fullmatch(r"[+-]?\d{1,3}(?:[.,]\d{3})*", number):
            return None
        mark = "," if "." in number else "."
    thousands = "," if mark == "." else "."
    text = number.replace(thousands, "").replace(mark.strip("?") or ".", ".")
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def _moment(row: dict[str, str]) -> int | None:
    """Return the time of a row in ns since 1970, or None; a time without a zone is interpreted as UTC."""
    text = " ".join(filter(None, (row.get("date", ""), row.get("time", ""))))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment_ns((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat())
