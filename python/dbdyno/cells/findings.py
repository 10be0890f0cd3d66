"""What can be found in the text of a cell: readings, details, errors, and lines that are not understood."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
DOUBTED = "a number that may be of another language, as others of this text are: 12.345 or 12,345?"
OTHER_LANGUAGE = (
    "CellCLI writes numbers as the locale of its session does; collect again with LC_ALL=C before cellcli or dcli, or "
    "write the values into the file as 1,325.8"
)
"""What to do about either."""
FOREIGN = "a number whose separators are not those of CellCLI in English (1,325.8)"


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
    a cell began, since 1970, where the text says so; `own_name` what the cell calls itself, where a
    document says so."""

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


def moment_ns(text: str) -> int | None:
    """A time such as 2012-10-12T14:33:45-04:00, with its zone, in ns since 1970; else None."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None or not 1970 < moment.year < 2200:
        return None
    return round(moment.timestamp() * 1e6) * 1000
