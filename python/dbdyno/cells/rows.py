r"""Parser of CellCLI rows whose columns are in an order chosen by the user: each word is recognised by its form.

    list metriccurrent attributes name, metricType, metricObjectName, metricValue, collectionTime
    FL_IO_W   Cumulative   FLASHLOG   1,234 IO requests   2012-10-12T14:33:45-04:00

A row has no header, but its words differ in form: a metric's name, a number with its unit, a type, a type of object, a
state, a time. The remaining word is the object's name. A type of object that occurs alone is the name of the object:
FLASHLOG is both. If there are two words of one kind, or a word too many, the row is not parsed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from dbdyno.cells.catalogue import FAMILIES, metric

TYPES = frozenset(("Cumulative", "Instantaneous", "Rate", "Transition"))
STATES = frozenset(("normal", "warning", "critical", "info"))
UNITS = frozenset(
    (
        *("%", "C", "MB", "KB", "GB", "us", "ms", "IO requests", "requests", "IO/sec", "MB/sec", "KB/sec", "/sec"),
        *("us/request", "ms/request", "MB/request", "/min", "packets/sec"),
    )
)
OBJECT_TYPES = frozenset(
    (
        *("CELL", "CELLDISK", "CELL_FILESYSTEM", "FLASHCACHE", "FLASHLOG", "GRIDDISK", "HOST_INTERCONNECT", "SMARTIO"),
        *("IORM_CATEGORY", "IORM_CONSUMER_GROUP", "IORM_DATABASE", "IORM_PLUGGABLE_DATABASE", "IBPORT", "PMEMCACHE"),
        *("PMEM", "PMEMLOG", "RAMCACHE", "XRMEMCACHE", "XRMEM", "PMEMCACHE_DISK", "ATTRIBUTE"),
    )
)
_NUMBER = re.compile(r"-?(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)")
_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_DISK = re.compile(r"(?:^|_)[CF]D_\d+(?:_|$)")
_PREFIX = re.compile(r"([A-Za-z0-9][\w.-]*):[ \t]+(.*)", re.DOTALL)


class RowWords(NamedTuple):
    """Recognised words of a row."""

    cell: str
    name: str
    item: str
    value: str
    unit: str
    at: str


def row_of(line: str) -> RowWords | None:
    """Return the recognised words of a row, or None if the line is not a row."""
    match = _PREFIX.fullmatch(line.strip())
    cell, text = (match[1], match[2]) if match else ("", line.strip())
    words = text.split()
    if not 2 <= len(words) <= 12:
        return None
    numbers = [at for at, word in enumerate(words) if _NUMBER.fullmatch(word)]
    if len(numbers) != 1:
        return None
    at = numbers[0]
    value, unit, taken = words[at], "", at + 1
    for many in (2, 1):
        if (text := " ".join(words[at + 1 : at + 1 + many])) in UNITS and len(words[at + 1 : at + 1 + many]) == many:
            unit, taken = text, at + 1 + many
            break
    if not unit and (foreign := _foreign(words[at + 1 :])):
        taken = at + 1 + foreign
    found = _rest([*words[:at], *words[taken:]])
    if found is None or (taken > at + 1 and not unit and not metric(found[0]).unit):
        return None
    return RowWords(
        cell, found[0], found[1], value, unit or (metric(found[0]).unit if taken > at + 1 else ""), found[2]
    )


def _foreign(behind: list[str]) -> int:
    """Return how many words after a number belong to a unit in another script, such as `IO 请求`.

    The metric's definition has the unit in English.
    """
    last = [at for at, word in enumerate(behind[:3]) if not word.isascii()]
    return last[-1] + 1 if last else 0


def _rest(words: list[str]) -> tuple[str, str, str] | None:
    """Return metric name, object and time from the words other than the value; None if the words are not a metric's."""
    times = [word for word in words if _TIME.fullmatch(word)]
    words = [word for word in words if word not in times and word not in TYPES]
    name = _name_of(words)
    if name is None or len(times) > 1:
        return None
    words.remove(name)
    for kind in (STATES, OBJECT_TYPES):
        own = [word for word in words if word in kind]
        if own and len(words) > 1:
            words.remove(own[0])
    if len(words) > 1:
        return None
    return name, "".join(words), "".join(times)


def is_disk(word: str) -> bool:
    """Return True if a word is the name of a disk, even in capitals: CD_03_CEL01, DATA_CD_03_CEL01."""
    return _DISK.search(word) is not None


def _name_of(words: list[str]) -> str | None:
    """Return the word that is the metric's name: a known name, else one with a known prefix, else any, or None."""
    names = [word for word in words if _NAME.fullmatch(word) and word not in OBJECT_TYPES and not is_disk(word)]
    known = [word for word in names if metric(word).known]
    begun = [word for word in names if word.partition("_")[0] in FAMILIES]
    return next(iter([*known, *begun, *names]), None)
