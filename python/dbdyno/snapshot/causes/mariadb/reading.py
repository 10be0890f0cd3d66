"""What a comparison of periods reads on MariaDB: statements by digest, tables by handler counts, status variables."""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import cached_property

from dbdyno.base.sql_text import literal
from dbdyno.snapshot.causes.change import Change, Key, Rates, rates
from dbdyno.snapshot.engines.mariadb.epochs import JITTER_US
from dbdyno.snapshot.engines.mariadb.load import TABLES
from dbdyno.snapshot.engines.mariadb.texts import OWN_STATEMENT
from dbdyno.snapshot.engines.mariadb.views import OTHER_DIGEST, STATEMENTS
from dbdyno.snapshot.reading.interval import Interval

_SUMS = (
    ("calls", "COUNT_STAR", 1.0),
    ("ms", "SUM_TIMER_WAIT", 1e6),
    ("work", "SUM_ROWS_EXAMINED", 1.0),
    ("disk_tables", "SUM_CREATED_TMP_DISK_TABLES", 1.0),
    ("merges", "SUM_SORT_MERGE_PASSES", 1.0),
    ("no_index", "SUM_NO_INDEX_USED", 1.0),
)
"""Values read for each digest: name, column and divisor."""
LEAST_SCAN_SHARE, LEAST_EXAMINED = 0.5, 1000.0
"""Smallest share of calls that scan a whole table, and fewest rows examined per call, to suspect a missing index."""


class MariadbChange(Change):
    """Two periods of a MariaDB server.

    A statement's key is its digest, a table's key is its schema and name.
    """

    view = STATEMENTS.name
    times = (("SUM_TIMER_WAIT", 1e-6),)
    calls = "COUNT_STAR"
    work = "rows examined"
    work_sql = "SUM_ROWS_EXAMINED"
    sleep = re.compile(r"\bsleep\s*\(", re.I)
    settings_view = ("global_variables", "value")
    jitter_us = JITTER_US

    def read_statements(self, interval: Interval, texts: dict[Key, str]) -> dict[Key, Rates]:
        """Return the rates by digest, summed over all default databases, and add the texts to `texts`."""
        found = self.read_sums(interval, "DIGEST", _SUMS, "verdict = 'ok' and COUNT_STAR > 0", texts)
        texts[OTHER_DIGEST] = "all statements for which the digest table had no room"
        return found

    def read_tables(self, interval: Interval, names: dict[Hashable, str]) -> dict[Hashable, Rates]:
        """Return the rates of rows fetched, inserted, updated and deleted by table, and add the names to `names`."""
        if not interval.has(TABLES):
            return {}
        counted = [c.name for c in interval.counters(TABLES)]
        found: dict[Hashable, Rates] = {}
        for row in interval.query(f"select * from {TABLES} where verdict = 'ok'", TABLES):
            key = (row["OBJECT_SCHEMA"], row["OBJECT_NAME"])
            names[key] = ".".join(key)
            found[key] = rates({name: row[name] for name in counted}, interval.seconds)
        return found

    def missing_index(self, statement: Key) -> tuple[str, str] | None:
        """Return evidence that a statement scans whole tables, from its digest's counts of scans and rows examined.

        The first of the two texts is empty, because these counts do not say whether an index could help, or which one.
        """
        _, examined = self.statements[statement].per_call("work")
        _, without = self.statements[statement].per_call("no_index")
        if without < LEAST_SCAN_SHARE or examined < LEAST_EXAMINED:
            return None
        return "", f"reads a whole table: {examined:,.0f} rows examined per call"

    def is_ours(self, text: str) -> bool:
        """Return True for a statement that a collector sends before its session is excluded from accounting."""
        return OWN_STATEMENT.search(text) is not None

    @cached_property
    def _status(self) -> tuple[Rates, Rates]:
        return self.rates_by_name(("global_status", "name"))

    def status(self, name: str) -> tuple[float, float]:
        """Return a status counter as a rate per second, before and after; 0 if it is not known."""
        return self._status[0].get(name, 0.0), self._status[1].get(name, 0.0)

    def state(self, name: str) -> tuple[float, float]:
        """Return a status variable's values at the first period's start and the second's end; 0 if unknown."""
        found = []
        for end, one in enumerate((self.before, self.after)):
            source = one.ends("global_status_now")[end]
            rows = one.query(f"select value from {source} where name = {literal(name)}")
            found.append(float(rows[0]["value"]) if rows else 0.0)
        return found[0], found[1]
