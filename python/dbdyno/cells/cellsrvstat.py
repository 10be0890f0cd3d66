r"""Output of `cellsrvstat`, or ExaWatcher's archive of it: more statistics than CellCLI has, every 5 seconds.

    zzz <01/17/2015 09:02:55> Count:720                           ExaWatcher's own line
    ===Current Time===                      Sat Jan 17 09:02:55 2015
    == Input/Output related stats ==
    Hard disk block IO reads (KB)                  1881618    46815620582
    Number of Jobs executed for each job type
              CacheGet                                   0     1485087768

The first number is the difference from the previous sample, the second counts since the service started (or is the
current value). Only the second number is stored: differences can be computed from it, even across a lost sample. The
object is the group of statistics, or the item indented below a heading. The printed time has no zone and is interpreted
as UTC; differences do not depend on that. Tables with more than two numbers per row (`-table`, the busiest job types)
are not parsed, because no sample of them was available.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from dbdyno.cells.catalogue import metric
from dbdyno.cells.listing import Listing, Reading, UnreadLine

_TIME = re.compile(
    r"={2,3}\s*Current Time\s*={2,3}\s+(?:[A-Za-z]{3}\s+)?(?P<month>[A-Za-z]{3})\s+(?P<day>\d{1,2})"
    r"\s+(?P<clock>\d\d:\d\d:\d\d)(?:\s+[A-Z]{3,4})?\s+(?P<year>\d{4})"
)
_BEGINS = re.compile(
    r"^(?:(?P<cell>[\w.-]+):)?[ \t]*={2,3}[ \t]*"
    r"(?:Current Time[ \t]*=|[\w/][\w/ -]* stats[ \t]*==)",
    re.MULTILINE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SECTION = re.compile(r"==\s*(?P<name>[^=]+?)(?: related)? stats\s*==")
_NUMBER = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?", re.ASCII)
_GROUP = re.compile(r"[A-Za-z ]+ name:\s*(?P<name>\S+)")
_PREFIX = re.compile(r"(?P<cell>[A-Za-z0-9][\w.-]*):(?:[ \t]|$)")
_PLAIN = re.compile(
    r"Number of|Total|Current|Allocation|Dynamic|Incarnation|Size of|OS memory|[SP]GA heap|Hwm|HWM"
    r"|High water|Smart IO|Read on|Hard disk|Flash|Cachesize|Keepsize|OLTPsize|Columnar"
)
_LOOKED_AT = 20_000


def is_cellsrvstat(text: str) -> bool:
    """Return True if a text begins like cellsrvstat's output, apart from ExaWatcher's lines before that output."""
    return _BEGINS.search(text, 0, _LOOKED_AT) is not None


def read_cellsrvstat(text: str, cell: str = "") -> Listing:
    """Parse samples of cellsrvstat; `cell` is used if no dcli prefix names the cell."""
    found = Listing()
    named = {match["cell"] for match in _BEGINS.finditer(text) if match["cell"]}
    readers: dict[str, _Reader] = {}
    for number, raw in enumerate(text.split("\n"), 1):
        line, whose = raw.rstrip(), cell
        match = _PREFIX.match(line) if named else None
        if match and match["cell"] in named:
            whose, line = match["cell"], line[match.end() :]
        if not line.strip() or line.startswith(("#", "zzz <")):
            continue
        reader = readers.setdefault(whose, _Reader(found, whose, indents=not named))
        why = reader.line(line, number)
        if why:
            found.unread.append(UnreadLine(number, raw.strip()[:200], why))
    for reader in readers.values():
        reader.close()
    found.unread.sort(key=lambda entry: entry.line)
    return found


@dataclass
class _Reader:
    """Parser of one cell's lines; `indents` is True if lines kept their indentation, which dcli removes."""

    found: Listing
    cell: str
    indents: bool
    at_ns: int | None = None
    section: str = ""
    group: str = ""
    heading: tuple[int, str] | None = None
    items: int = 0

    def line(self, line: str, number: int) -> str | None:
        """Parse a non-empty line; return why it could not be parsed, or None."""
        body = line.strip()
        if body.startswith("=="):
            self.close()
            return self._time_or_section(" ".join(body.split()))
        words = body.split()
        if len(words) > 1 and _NUMBER.fullmatch(words[-1]):
            return self._row(words, number, indented=line[0] in " \t")
        if body.startswith("END "):
            self.heading = None
            return None
        self.close()
        group = _GROUP.fullmatch(body)
        if group:
            self.group = group["name"]
        elif re.search(r"[A-Za-z]", body):
            self.heading, self.items = (number, body.rstrip(":").rstrip()), 0
        else:
            return "not a statistic of cellsrvstat"
        return None

    def close(self) -> None:
        """End the current heading; a heading without items is reported as unread."""
        if self.heading and not self.items:
            line, text = self.heading
            self.found.unread.append(UnreadLine(line, text[:200], "a heading with nothing below it"))
        self.heading = None

    def _row(self, words: list[str], number: int, *, indented: bool) -> str | None:
        name, value = words[:-1], words[-1]
        # A statement id of zeros, 0000000000000, is not one of the two numbers.
        two = len(name) > 1 and bool(_NUMBER.fullmatch(name[-1])) and not name[-1].startswith("00")
        if two:
            name = name[:-1]
            if _NUMBER.fullmatch(name[-1]):
                return "a row of more than two numbers"
        text = " ".join(name)
        if self.heading and (indented if self.indents else not _PLAIN.match(text)):
            item = " ".join(part.strip("`'\"") for part in name)
            item = f"{self.group} {item}" if self.group else item
            self._add(self.heading[1], item, value, number)
            self.items += 1
            return None
        self.close()
        if not two:
            return "a statistic with one number instead of two"
        statistic = text.rstrip(":").rstrip()
        if not statistic:
            return "numbers of a statistic without a name"
        self._add(statistic, self.group or self.section, value, number)
        return None

    def _add(self, name: str, item: str, text: str, line: int) -> None:
        unit = metric(name).unit
        self.found.readings.append(Reading(self.cell, name, item, float(text), unit, text, line, self.at_ns))

    def _time_or_section(self, body: str) -> str | None:
        self.group = ""
        section = _SECTION.fullmatch(body)
        if section:
            self.section = section["name"]
            return None
        self.section, self.at_ns = "", None
        match = _TIME.fullmatch(body)
        month = match["month"].lower() if match else ""
        if match is None or month not in _MONTHS:
            return "a time that cannot be read; expected a form like 'Sat Jan 17 09:02:55 2015'"
        date = f"{match['year']}-{_MONTHS.index(month) + 1:02}-{int(match['day']):02}"
        try:
            moment = datetime.fromisoformat(f"{date}T{match['clock']}")
        except ValueError as error:
            return f"an invalid time: {error}"
        self.at_ns = int(moment.replace(tzinfo=UTC).timestamp()) * 10**9
        return None
