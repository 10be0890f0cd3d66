"""The log_line_prefix of a log, found from its lines: a common one, or any that has a process and a time.

    guess_pattern(["2026-11-21 00:59:57.437 UTC [28] LOG:  duration: 1.5 ms"])     # that of '%m [%p] '

The result is a pattern in the form of `prefix.pattern_of`, for readers that are not in Python.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dbdyno.snapshot.plans.prefix import STAMP, ZONE, pattern_of

COMMON_PREFIXES = (
    "%m [%p] ",  # the default
    "%m [%p] %q%u@%d ",  # Debian
    "%t:%r:%u@%d:[%p]:",  # RDS
    "%m:%r:%u@%d:[%p]:%l:%e:%s:%v:%x:%c:%q%a:",
    "%m:%r:%u@%d:[%p]:%l:%e:%s:%v:%x:%c:%q%a",
    "%m [%p]: [%l-1] db=%d,user=%u ",  # Cloud SQL
    "%m [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
    "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",  # pgBadger
    "%t [%p]: user=%u,db=%d,app=%a,client=%h ",
    "%m [%p] user=%u,db=%d,app=%a,client=%h ",
    "%m [%p] user=%u,db=%d ",
    "%t [%p]: [%l-1] user=%u,db=%d ",
    "%t [%p]: [%l-1] ",
    "%m %c %u@%d ",
    "%m %u@%d [%p] ",
    "%t-%c-",  # Azure
    "%t [%p] ",
    "%m %p ",
    "%t %p ",
    "%n [%p] ",
)
"""Prefixes that are tried in this order; each is a common value of `log_line_prefix`."""
PREFIXES_WITHOUT_TIME = (
    "",
    "%q%u@%d ",
    "%u@%d ",
    "[%p] ",
    "user=%u,db=%d ",
    "user=%u,db=%d,app=%a,client=%h ",
    "%q%a ",
)
"""Prefixes of logs whose times and processes syslog writes."""
_TIME = rf"(?:(?P<m>{STAMP}(?:\.\d{{1,6}})?(?: {ZONE})?)|(?P<n>\d{{10}}\.\d{{3}}))"
_PROCESSES = (
    r"\[(?P<p>\d{1,10})(?:-\d+)?\]",
    r"(?:pid|PID|process)[=: ]{1,2}(?P<p>\d{1,10})",
    r"(?P<c>[0-9a-f]{8}\.[0-9a-f]{1,8})",
)
_DATABASE = r"(?:.*?(?:db|database)=(?P<d>[^\s,;\]]{1,63}))?.*?"
_ANY = (
    *(rf".*?{_TIME}.*?{process}{_DATABASE}" for process in _PROCESSES),
    *(rf".*?{process}.*?{_TIME}{_DATABASE}" for process in _PROCESSES),
)
_ENOUGH = 0.9
"""Smallest share of the lines that a pattern must match."""
_WORD = re.compile(r"(?:LOG|ERROR|FATAL|PANIC|WARNING|DETAIL|STATEMENT|HINT|CONTEXT|NOTICE) ?:  ")


def guess_pattern(lines: Sequence[str], *, is_syslog: bool = False) -> str | None:
    """Return the pattern that matches most of the lines that begin an entry; None if none does.

    For lines of syslog, from which its own prefix is removed, a prefix without time and process is enough.
    """
    sample = [line for line in lines if not line.startswith("\t") and _WORD.search(line)]
    if not sample:
        return None
    common = [pattern_of(prefix) for prefix in COMMON_PREFIXES]
    bare = [pattern_of(prefix) for prefix in PREFIXES_WITHOUT_TIME] if is_syslog else []
    last = [".*?"] if is_syslog else []
    for pattern in (*common, *bare, *_ANY, *last):
        whole = re.compile(rf"(?:{pattern}){_WORD.pattern}")
        if sum(whole.match(line) is not None for line in sample) >= _ENOUGH * len(sample):
            return pattern
    return None
