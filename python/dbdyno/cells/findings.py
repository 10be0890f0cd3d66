"""Results of parsing a cell's text: readings, details, errors, and lines that could not be parsed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
AMBIGUOUS_NUMBER = "a number that may be in another locale, like others in this text: 12.345 or 12,345?"
OTHER_LANGUAGE = (
    "CellCLI writes numbers as the locale of its session does; collect again with LC_ALL=C before cellcli or dcli, or "
    "write the values into the file as 1,325.8"
)
"""Next step for numbers in another language's format."""
FOREIGN_NUMBER = "a number whose separators are not those of CellCLI in English (1,325.8)"


class Reading(NamedTuple):
    """One value of one metric.

    `cell` is empty if the text does not name it; `text` is the value as printed; `at_ns` is the collection time in ns
    since 1970, if printed.
    """

    cell: str
    name: str
    object: str
    value: float
    unit: str
    text: str
    line: int
    at_ns: int | None = None


class UnreadLine(NamedTuple):
    """Line that could not be parsed, with the reason."""

    line: int
    text: str
    why: str


class CellError(NamedTuple):
    """Error that CellCLI printed, with its code CELL-nnnnn and its message."""

    cell: str
    code: str
    message: str
    line: int


@dataclass
class Listing:
    """Everything found in a text.

    `details` are the objects of DETAIL listings (attribute to text, with the cell under the empty key if known);
    `started_ns` is the start of each cell's service in ns since 1970, if known; `own_name` is the name that the cell
    reports for itself, if a document has it.
    """

    readings: list[Reading] = field(default_factory=list)
    started_ns: dict[str, int] = field(default_factory=dict)
    details: list[dict[str, str]] = field(default_factory=list)
    errors: list[CellError] = field(default_factory=list)
    unread: list[UnreadLine] = field(default_factory=list)
    own_name: str = ""


def visible(text: str) -> str:
    """Return a text that is safe for terminals and files.

    Control characters (except tab and line ends) and lone surrogates become U+FFFD.
    """
    return _UNSEEN.sub("\ufffd", text)


def moment_ns(text: str) -> int | None:
    """Return a time with zone, such as 2012-10-12T14:33:45-04:00, in ns since 1970; None for any other text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None or not 1970 < moment.year < 2200:
        return None
    return round(moment.timestamp() * 1e6) * 1000
