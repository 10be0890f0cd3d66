"""MariaDB's logs of statements, recognized by their first lines: the slow log and the general log.

>>> mariadb_form("# User@Host: app[app] @ localhost []\\n# Thread_id: 5  Schema: shop  QC_hit: No\\n".splitlines())
'slow'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

SLOW, GENERAL = "slow", "general"
_SLOW = re.compile(r"# (?:Time: \d|User@Host: |Thread_id: \d)")
_GENERAL = re.compile(r"(?:\t\t|\d{6} [ \d]\d:\d\d:\d\d\t) *\d+ [A-Z][A-Za-z _]{2,22}\t")
_STAMP = re.compile(r"SET (?:\w+=\d+,)*timestamp=(\d{9,11})(?:\.\d+)?;$")
_TIME = re.compile(r"(\d\d)(\d\d)(\d\d) ([ \d]\d:\d\d:\d\d)\t")


def mariadb_form(lines: Sequence[str]) -> str | None:
    """Return the form of a MariaDB log, recognized by its first lines; None if they are not from such a log."""
    for line in lines:
        if _SLOW.match(line):
            return SLOW
        if _GENERAL.match(line):
            return GENERAL
    return None


def first_time(lines: Sequence[str]) -> str | None:
    """Return the first timestamp in lines of a MariaDB log, as text that sorts by time; None if there is none."""
    for line in lines:
        if found := _STAMP.match(line):
            return datetime.fromtimestamp(int(found[1]), UTC).isoformat(" ")
        if found := _TIME.match(line):
            year, month, day, time = found.groups()
            return f"20{year}-{month}-{day} {time.replace(' ', '0')}"
    return None
