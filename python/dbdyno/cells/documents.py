"""CellCLI's answers as documents: `-xml`, and JSON of the newest releases.

The XML has what the text lacks: values that are not rounded, the collection time in milliseconds,
the cell's name, and when its service began. No sample of the JSON was at hand: an object with
`name` and `metricValue` is taken for a metric wherever it stands, one with a `name` for a detail.
"""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

from dbdyno.cells.catalogue import metric
from dbdyno.cells.cellsrvstat import is_cellsrvstat, read_cellsrvstat
from dbdyno.cells.listing import CellError, Listing, Reading, Unread, moment_ns, read_text
from dbdyno.cells.numbers import number_and_unit


def read_any(text: str, cell: str = "") -> Listing:
    """Reads what a cell answered: XML, JSON, cellsrvstat or CellCLI's text, told apart by how it
    begins.

    A document that breaks off is read as far as it goes; the place is in `unread`.
    """
    head = text.lstrip("\ufeff \t\r\n")[:200]
    if head.startswith(("<?xml", "<cli-output")):
        return read_xml(text, cell)
    if head.startswith(("{", "[")):
        return read_json(text, cell)
    if is_cellsrvstat(text):
        return read_cellsrvstat(text, cell)
    return read_text(text, cell)


def read_xml(text: str, cell: str = "") -> Listing:
    """Reads `<cli-output>`; several documents one after the other are read one by one."""
    found = Listing()
    begin = 0
    while begin < len(text):
        end = text.find("<?xml", begin + 1)
        end = len(text) if end < 0 else end
        line = text.count("\n", 0, begin) + 1
        _document(text[begin:end].strip(), cell, line, found)
        begin = end
    return found


def _document(text: str, cell: str, line: int, found: Listing) -> None:
    if not text:
        return
    if "<!" in text.split("<cli-output", 1)[0]:  # entities could make a small text huge
        why = "a document type, which no cell sends; the document is left out"
        found.unread.append(Unread(line, text[:200], why))
        return
    parser = ElementTree.XMLParser(target=_Reader(cell, line, found))  # noqa: S314 - no entities
    try:
        parser.feed(text)
        parser.close()
    except ElementTree.ParseError as error:
        at, column = error.position
        rows = text.split("\n")
        broken = rows[min(at, len(rows)) - 1][:200]
        found.unread.append(Unread(line + at - 1, broken, f"no XML from column {column + 1} on"))


class _Reader:
    """Takes the elements as they come: objects below the root, their attributes below them."""

    def __init__(self, cell: str, line: int, found: Listing) -> None:
        self.cell = cell
        self.line = line
        self.found = found
        self.depth = 0
        self.values: dict[str, str] = {}
        self.text = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self.depth += 1
        self.text = ""
        if self.depth == 2:
            self.values = {}
        if tag == "context":
            self.cell = attributes.get("cell") or self.cell
            began = attributes.get("ossStartTimestamp", "")
            began_ns = _moment_ns(began)
            if began_ns is not None:
                self.found.started_ns[self.cell] = began_ns

    def data(self, text: str) -> None:
        """Some text of an element."""
        self.text += text

    def end(self, tag: str) -> None:
        """An element ends."""
        if self.depth == 3:
            self.values[tag] = self.text.strip()
        elif self.depth == 2:
            self._item(tag)
        self.text = ""
        self.depth -= 1

    def _item(self, tag: str) -> None:
        text = self.text.strip()
        code, _, words = text.partition(":")
        if "metricValue" in self.values:
            _metric(self.values, self.cell, self.line, self.found)
        elif self.values:
            whose = {"": self.cell} if self.cell else {}
            self.found.details.append({**whose, **self.values})
        elif code.startswith("CELL-"):
            self.found.errors.append(CellError(self.cell, code, words.strip(), self.line))
        elif text:
            why = f"an element <{tag}> of text"
            self.found.unread.append(Unread(self.line, text[:200], why))


def _metric(values: dict[str, Any], cell: str, line: int, found: Listing) -> None:
    text = str(values["metricValue"])
    number = number_and_unit(text)
    name = str(values.get("name", ""))
    if number is None or not name:
        found.unread.append(Unread(line, f"{name} {text}"[:200], "a metric without a number"))
        return
    value, unit = number
    at_ns = _moment_ns(str(values.get("collectionTime", "")))
    item = str(values.get("metricObjectName", ""))
    unit = unit or metric(name).unit
    found.readings.append(Reading(cell, name, item, value, unit, text, line, at_ns))


def _moment_ns(text: str) -> int | None:
    """A time in milliseconds since 1970, or as text with its zone, in ns; None if it is neither."""
    if text.isascii() and text.isdigit():
        return int(text) * 10**6 if len(text) <= 13 else None
    return moment_ns(text)


def read_json(text: str, cell: str = "") -> Listing:
    """Reads JSON, one document or one a line; metrics are taken wherever they stand."""
    found = Listing()
    try:
        _walk(json.loads(text), cell, 1, found)
    except RecursionError:
        found.unread.append(Unread(1, text[:200], "JSON that is nested too deeply"))
    except ValueError:
        for line, own in enumerate(text.split("\n"), 1):
            if not own.strip():
                continue
            try:
                _walk(json.loads(own), cell, line, found)
            except (ValueError, RecursionError) as error:
                found.unread.append(Unread(line, own[:200], f"no JSON: {error}"))
    return found


def _context(value: dict[str, Any], cell: str, found: Listing) -> str:
    """Whose an object is: its own `cell`, or that of a `context` beside it, as in the XML."""
    for at in (value.get("context"), value):
        if isinstance(at, dict) and isinstance(at.get("cell"), str) and at["cell"]:
            cell = at["cell"]
            began_ns = _moment_ns(str(at.get("ossStartTimestamp", "")))
            if began_ns is not None:
                found.started_ns[cell] = began_ns
            break
    return cell


def _walk(value: Any, cell: str, line: int, found: Listing) -> None:
    if isinstance(value, list):
        for entry in value:
            _walk(entry, cell, line, found)
    elif isinstance(value, dict):
        cell = _context(value, cell, found)
        if "metricValue" in value:
            _metric(value, cell, line, found)
        elif "name" in value and not any(isinstance(v, dict | list) for v in value.values()):
            texts = {str(key): str(entry) for key, entry in value.items()}
            found.details.append({"": cell, **texts} if cell else texts)
        else:
            for entry in value.values():
                _walk(entry, cell, line, found)
