"""CellCLI's answers as documents: `-xml`, and the JSON of the newest releases.

The XML has what the text lacks: unrounded values, the collection time in milliseconds, the cell's name, and the start
time of its service. No sample of the JSON was available: an object with `name` and `metricValue` is interpreted as a
metric wherever it occurs, an object with only a `name` as a detail.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import isinf
from typing import Any
from xml.etree import ElementTree

from dbdyno.cells.catalogue import metric
from dbdyno.cells.cellsrvstat import is_cellsrvstat, read_cellsrvstat
from dbdyno.cells.details import is_metric
from dbdyno.cells.listing import CellError, Listing, Reading, UnreadLine, moment_ns, read_text, visible
from dbdyno.cells.numbers import number_and_unit

MOST_UNREAD = 10_000
"""Maximum number of problems that are reported for one answer."""
_FLAT = re.compile(r'\{[^{}]{0,4000}"metricValue"[^{}]{0,4000}\}')

_JSON = re.compile(r"\{\s*(?:[\"}]|$)|\[\s*(?:[\[{\"\]\d-]|$)")
"""Pattern of how a JSON text begins; a prompt such as `[oracle@db01 ~]$` does not match."""
_BEGINS = tuple(re.compile(rf"^[\ufeff \t]*+{mark}", re.MULTILINE) for mark in (r"<\?xml", "<cli-output"))

_WHOSE = re.compile(r'"cell"\s*:\s*"([^"\\]+)"')


def read_any(text: str, cell: str = "") -> Listing:
    """Parse a cell's answer, which is XML, JSON, cellsrvstat or CellCLI's text, recognised by its beginning.

    A truncated document is parsed as far as possible, and the position of the break is added to `unread`. Text before
    the XML is added there, too, for example the output of a login script of the cell.
    """
    text = visible(text)
    head = text.lstrip("\ufeff \t\r\n")[:200]
    begin = _document_at(text)
    if begin is not None:
        return read_xml(text, cell, begin)
    if _JSON.match(head):
        return read_json(text, cell)
    if is_cellsrvstat(text):
        return read_cellsrvstat(text, cell)
    return read_text(text, cell)


def _document_at(text: str) -> int | None:
    """Return the position at which the first line of XML begins, or None."""
    for mark in _BEGINS:
        if match := mark.search(text):
            return match.start()
    return None


def read_xml(text: str, cell: str = "", begin: int = 0) -> Listing:
    """Parse one or more documents `<cli-output>`; text before position `begin` is parsed as plain text."""
    found = read_text(text[:begin], cell)
    line, counted = 1, 0
    while begin < len(text):
        end = text.find("<?xml", begin + 1)
        end = len(text) if end < 0 else end
        body = text[begin:end].lstrip()
        line += text.count("\n", counted, end - len(body))
        counted = end - len(body)
        if len(found.unread) >= MOST_UNREAD:
            found.unread.append(
                UnreadLine(line, body[:200], "and the rest is not read: too much text before it is not XML")
            )
            break
        _document(body.rstrip(), cell, line, found)
        begin = end
    return found


def _document(text: str, cell: str, line: int, listing: Listing) -> None:
    if not text:
        return
    if "<!" in text.split("<cli-output", 1)[0]:  # entities could expand a small text to a huge one
        why = "a document type declaration, which no cell sends; the document is left out"
        listing.unread.append(UnreadLine(line, text[:200], why))
        return
    parser = ElementTree.XMLParser(target=_Reader(cell, line, listing))  # noqa: S314 - no entities
    try:
        parser.feed(text)
        parser.close()
    except ElementTree.ParseError as error:
        at, column = error.position
        rows = text.split("\n")
        at = min(at, len(rows))
        listing.unread.append(UnreadLine(line + at - 1, rows[at - 1][:200], f"no XML from column {column + 1} on"))


class _Reader:
    """XML parser target: objects are the elements below the root, their attributes the elements below them."""

    def __init__(self, cell: str, line: int, listing: Listing) -> None:
        self.cell = cell
        self.line = line
        self.found = listing
        self.depth = 0
        self.values: dict[str, str] = {}
        self.text = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""
        self.depth += 1
        self.text = ""
        if self.depth == 2:
            self.values = {}
        if tag == "context":
            self.cell = attributes.get("cell") or self.cell
            self.found.own_name = self.found.own_name or attributes.get("cell", "")
            began = attributes.get("ossStartTimestamp", "")
            began_ns = _moment_ns(began)
            if began_ns is not None:
                self.found.started_ns[self.cell] = began_ns

    def data(self, text: str) -> None:
        """Handle text of an element."""
        self.text += text

    def end(self, tag: str) -> None:
        """Handle the end of an element."""
        if self.depth == 3:
            self.values[tag] = self.text.strip()
        elif self.depth == 2:
            self._item(tag)
        self.text = ""
        self.depth -= 1

    def _item(self, tag: str) -> None:
        text = self.text.strip()
        code, _, words = text.partition(":")
        if is_metric(self.values):
            _metric(self.values, self.cell, self.line, self.found)
        elif self.values:
            whose = {"": self.cell} if self.cell else {}
            self.found.details.append({**whose, **self.values})
        elif code.startswith("CELL-"):
            self.found.errors.append(CellError(self.cell, code, words.strip(), self.line))
        elif text:
            why = f"an element <{tag}> of text"
            self.found.unread.append(UnreadLine(self.line, text[:200], why))


def _metric(values: Mapping[str, Any], cell: str, line: int, listing: Listing) -> None:
    text = str(values["metricValue"])
    number = number_and_unit(text)
    name = visible(str(values.get("name", "")))
    if number is None or not name or isinf(number[0]):
        listing.unread.append(UnreadLine(line, f"{name} {text}"[:200], "a metric without a number"))
        return
    value, unit = number
    at_ns = _moment_ns(str(values.get("collectionTime", "")))
    item = visible(str(values.get("metricObjectName", "")))
    unit = unit or metric(name).unit
    listing.readings.append(Reading(cell, name, item, value, unit, text, line, at_ns))


def _moment_ns(text: str) -> int | None:
    """Return a time in ns since 1970, given in ms since 1970 or as text with a zone; None if it is neither."""
    if text.isascii() and text.isdigit():
        return int(text) * 10**6 if len(text) <= 13 else None
    return moment_ns(text)


def read_json(text: str, cell: str = "") -> Listing:
    """Parse JSON, one document or one per line; metrics are found at any depth, also in a truncated document."""
    found = Listing()
    try:
        _walk(json.loads(text), cell, 1, found)
        return found
    except RecursionError:
        found.unread.append(UnreadLine(1, text[:200], "JSON that is nested too deeply"))
        return found
    except ValueError as error:
        whole = error
    rows = [(at, row, _load_json(row)) for at, row in enumerate(text.split("\n"), 1) if row.strip()]
    if any(isinstance(value, dict) for _, _, value in rows):
        for line, row, value in rows:
            if isinstance(value, ValueError):
                found.unread.append(UnreadLine(line, row[:200], f"no JSON: {value}"))
            else:
                _walk(value, cell, line, found)
        return found
    named = _WHOSE.search(text)
    cell = named[1] if named else cell
    line, last = 1, 0
    for match in _FLAT.finditer(text):
        line += text.count("\n", last, match.start())
        last = match.start()
        value = _load_json(match[0])
        if isinstance(value, dict):
            _walk(value, cell, line, found)
    line = getattr(whole, "lineno", 1)
    found.unread.append(UnreadLine(line, text.split("\n")[line - 1][:200], f"no JSON: {whole}"))
    return found


def _load_json(text: str) -> Any:
    """Return the value of a JSON text, or the error that it caused."""
    try:
        return json.loads(text)
    except RecursionError:
        return ValueError("it is nested too deeply")
    except ValueError as error:
        return error


def _context(value: dict[str, object], cell: str, listing: Listing) -> str:
    """Return the cell of an object: the `cell` of its `context`, as in the XML, or else the object's own `cell`."""
    for at in (value.get("context"), value):
        if isinstance(at, dict) and isinstance(at.get("cell"), str) and at["cell"]:
            cell = visible(at["cell"])
            listing.own_name = listing.own_name or cell
            began_ns = _moment_ns(str(at.get("ossStartTimestamp", "")))
            if began_ns is not None:
                listing.started_ns[cell] = began_ns
            break
    return cell


def _walk(value: Any, cell: str, line: int, listing: Listing) -> None:
    if isinstance(value, list):
        for entry in value:
            _walk(entry, cell, line, listing)
    elif isinstance(value, dict):
        cell = _context(value, cell, listing)
        if is_metric(value):
            _metric(value, cell, line, listing)
        elif "name" in value and not any(isinstance(v, dict | list) for v in value.values()):
            texts = {visible(str(key)): visible(str(entry)) for key, entry in value.items()}
            listing.details.append({"": cell, **texts} if cell else texts)
        else:
            for entry in value.values():
                _walk(entry, cell, line, listing)
