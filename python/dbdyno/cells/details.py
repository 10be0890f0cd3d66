r"""Parts of CellCLI's text that are not metric rows: objects in DETAIL, alerts, errors, prompts; the rest is reported.

    name:<pad>exa1cel01                                          DETAIL: one attribute per line
    1_1  2012-10-12T14:33:45-04:00  critical  "Disk failed"      an alert
    CELL-01504: Invalid command syntax.                          an error, on stdout
    [oracle@db01 ~]$ dcli -g cells cellcli -e list cell          a typed command, pasted with the answer

A metric in DETAIL becomes a reading like any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isinf

from dbdyno.cells.catalogue import metric
from dbdyno.cells.findings import FOREIGN_NUMBER, CellError, Listing, Reading, UnreadLine, moment_ns
from dbdyno.cells.numbers import number_and_unit

_ERROR = re.compile(r"(CELL-\d{5}):\s*(.*)")
_PREFIX = re.compile(r"([A-Za-z0-9][\w.-]*):[ \t]*(.*)")
_DETAIL = re.compile(r"([A-Za-z]\w*):(?:[ \t]+(.*))?")
_TYPED = re.compile(
    r"CellCLI>|\[[\w.-]++@[^\]\n]*+\][$#]|[$#>\"'`]* *(?:dcli|cellcli|exadcli|exacli)(?![\w:])|[\"'`] *list +[a-z]+\b"
    r"|list +(?:metric(?:current|history|definition)|alerthistory)\b"
    r"|CellCLI: Release |Copyright \(c\)|Cell Efficiency Ratio:|quitting$"
)
_OF_ALERTS = {"alertSequenceID", "alertMessage", "severity"}
_ALERT = re.compile(
    r"(?P<name>\d+(?:_\d+)?)[ \t]+(?P<beginTime>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d))[ \t]+"
    r"(?P<severity>critical|warning|info|clear)[ \t]+(?P<alertMessage>\S.*)"
)


def parse_details(rest: list[tuple[int, str]], cell: str, listing: Listing) -> None:
    """Parse errors, alerts and DETAIL objects with their continuation lines; other lines are added as unread."""
    block: dict[str, str] | None = None
    attribute, last, indent = "", -1, 0
    cells = _prefixes(rest)
    blocks: list[tuple[dict[str, str], list[tuple[int, str]]]] = []
    for line, raw in rest:
        text = raw.rstrip("\r").strip()
        whose, body = _split(text, cell, cells)
        if _TYPED.match(raw.strip()) or _TYPED.match(body):
            block = None
            continue
        if alert := _ALERT.fullmatch(body):
            listing.details.append({**({"": whose} if whose else {}), **alert.groupdict()})
            block = None
            continue
        error = _ERROR.fullmatch(body)
        if error:
            listing.errors.append(CellError(whose, error[1], error[2], line))
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
            listing.unread.append(UnreadLine(line, raw.rstrip("\r")[:200], _reason(body)))
            block = None
            continue
        last = line
        blocks[-1][1].append((line, raw))
    for attributes, lines in blocks:
        # A single line 'word: text' is not an object, as in 'ssh: connect to host ...'.
        if is_metric(attributes) and _reading(attributes, lines[0][0], listing):
            continue
        if lacks_value(attributes):
            listing.unread.append(
                UnreadLine(lines[0][0], lines[0][1].rstrip("\r")[:200], "a metric in DETAIL without its value")
            )
            continue
        if len(attributes.keys() - {""}) > 1 or "name" in attributes:
            listing.details.append(attributes)
            continue
        listing.unread += [UnreadLine(at, raw.rstrip("\r")[:200], _reason(raw.strip())) for at, raw in lines]
    listing.readings.sort(key=lambda reading: reading.line)


def is_metric(values: Mapping[str, object]) -> bool:
    """Return True if an object is a metric; an alert also has a `metricValue`: the value when the alert was raised."""
    return "metricValue" in values and not values.keys() & _OF_ALERTS


def lacks_value(values: Mapping[str, object]) -> bool:
    """Return True if an object is a metric without its value, because it was cut off or not requested.

    Only metrics and alerts have a `metricObjectName`.
    """
    return "metricObjectName" in values and "metricValue" not in values and not values.keys() & _OF_ALERTS


def _reading(values: dict[str, str], line: int, listing: Listing) -> bool:
    """Add the metric of a DETAIL object to the readings; return False if it could not be parsed."""
    number = number_and_unit(values["metricValue"])
    at = values.get("collectionTime", "")
    at_ns = moment_ns(at) if at else None
    name = values.get("name", "")
    if number is None or isinf(number[0]) or not name or (at and at_ns is None):
        return False
    value, unit = number
    text = values["metricValue"].split()[0]
    item = values.get("metricObjectName", "")
    listing.readings.append(
        Reading(values.get("", ""), name, item, value, unit or metric(name).unit, text, line, at_ns)
    )
    return True


def _prefixes(rest: list[tuple[int, str]]) -> set[str]:
    """Return the cell names in dcli's prefixes: words before a colon that is followed by an attribute or an error.

    An attribute value such as 'error: x' looks the same but occurs alone: a cell's name is on two consecutive lines, or
    before an error, or contains a digit, a dot or a dash.
    """
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
    """Split a line into the cell of its dcli prefix (else `cell`) and the rest."""
    match = _PREFIX.fullmatch(text)
    return (match[1], match[2]) if match and match[1] in cells else (cell, text)


def _reason(body: str) -> str:
    match = re.match(r"(?:[\w.-]+:[ \t]+)?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?=[ \t]|$)", body)
    if match is None:
        return "neither a metric, nor an attribute, nor an error"
    rest = body[match.end() :]
    if re.search(r"\d{4}-\d\d-\d\dT\S*$", rest):
        return "a metric whose time of collection cannot be read"
    if re.search(r"[ \t]\d+(?:[.' \u00a0]\d{3})+\b|\b0,\d|\d,\d{1,2}\b|\d\.\d{3},\d", rest):
        return FOREIGN_NUMBER
    return "a metric without a value that can be read"
