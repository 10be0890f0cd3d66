"""Collector of an Oracle instance's V$ views: nothing created, nothing reset, licensed views only if they are named.

Limits: it was developed against the documented views, with recorded rows, and was not run against an instance. One
instance of a cluster is one target. In a container database, the views show what the connection's container may see.
"""

from __future__ import annotations

import contextlib
import heapq
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import SnapshotError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.memory import file_connection
from dbdyno.snapshot.engines.oracle.connection import address, connect, driver, first_line
from dbdyno.snapshot.engines.oracle.sampler import Sampler
from dbdyno.snapshot.engines.oracle.scripts import LICENSED, Script, script
from dbdyno.snapshot.engines.protocol import Collector
from dbdyno.snapshot.engines.view import Column, Options, View, unread_view
from dbdyno.snapshot.reading.clock import clock_stamp

if TYPE_CHECKING:
    from dbdyno.snapshot.store.folder import Snapshot

ORDER = ("sysstat", "sys_time_model", "system_event", "event_histogram_micro", "segment_statistics", "sql", "parameter")
TEXTS = "statement_texts"
TEXT_COLUMNS = (
    Column("sql_id", "key", "text", "VARCHAR"),
    Column("fingerprint", "text", "text", "VARCHAR"),
    Column("query", "text", "text", "VARCHAR"),
)
ORDERS = ("elapsed_time", "cpu_time", "buffer_gets", "disk_reads", "executions", "parse_calls")
TEXTS_PER_ORDER = 25
"""Number of top statements per sort order whose texts are read."""

_LITERAL = re.compile(
    r"[nN]?[qQ]'(\[.*?\]|\{.*?\}|\(.*?\)|<.*?>|(\S).*?\2)'|[nN]?'(?:[^']|'')*'"
    r"|/\*(?!\+).*?\*/|--(?!\+)[^\n]*|(?<![\w$#.:\"])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?",
    re.DOTALL,
)


class OracleCollector(Collector):
    """Collector that keeps its connection between the snapshots of a watch; a context manager."""

    def __init__(self, dsn: str, options: Options) -> None:
        super().__init__(options)
        self._address = address(dsn)
        self.name = options.name or self._address.name
        self._connection: Any = connect(self._address, options.statement_timeout_ms)

    def facts(self) -> JsonObject:
        """Return what the last snapshot recorded about the instance: identity, start time, version."""
        licensed = list(self._address.licensed)
        return {"dsn": self._address.safe, "licensed": licensed, **self._facts}

    def collect(self, before: Snapshot | None) -> list[View]:
        """Read all views and return their current contents.

        Raises:
            SnapshotError: The instance is gone, or does not allow its basic views to be read.
        """
        if self._connection is None:
            self._connection = connect(self._address, self.options.statement_timeout_ms)
        instance = self._read(script("instance"))
        if instance.problem is not None:
            raise SnapshotError(
                f"v$instance and v$database cannot be read: {instance.problem}",
                where=self._address.safe,
                next_step=instance.next_step,
            )
        columns = [column.name for column in instance.columns]
        (row,) = instance.rows
        assert isinstance(row, tuple)
        self._facts = {**dict(zip(columns, row, strict=True)), **clock_stamp()}
        views = [self._read(script(name)) for name in ORDER]
        statements = next(view for view in views if view.name == "sql")
        if statements.problem is None and not self.options.redact:
            views.append(self._texts(statements, before))
        since_us = before.at_ns // 1000 if before else self._facts["at_us"] - 60_000_000
        for name in self._address.licensed:
            views.append(self._read(script(LICENSED + name), {"since_us": since_us}))
        return [instance, *views]

    def sampler(self, period_s: float) -> Sampler:
        """Return a sampler of the sessions with its own connection."""
        return Sampler(self._address, period_ns=round(period_s * 1e9))

    def close(self) -> None:
        """Close the connection; the values already read remain available."""
        if self._connection is not None:
            with contextlib.suppress(Exception):
                self._connection.close()
        self._connection = None

    def _read(self, script: Script, parameters: JsonObject | None = None) -> View:
        started = time.perf_counter_ns()
        try:
            rows = self._rows(script.sql, parameters or {})
        except driver().Error as error:
            if not self._connection.is_healthy():
                self.close()
                raise SnapshotError(
                    f"the instance closed the connection: {first_line(error)}",
                    where=self._address.safe,
                    next_step="try again when the instance is up; earlier snapshots stay in the store",
                ) from error
            return unread_view(script.view, script.scope, first_line(error), f"grant {script.grants}")
        spent = time.perf_counter_ns() - started
        return View(
            script.view,
            script.scope,
            script.columns,
            rows,
            appearance=script.appearance,
            elapsed_ns=spent,
        )

    def _texts(self, statements: View, before: Snapshot | None) -> View:
        known = _known(before)
        wanted = [one for one in top_statements(statements) if one not in known][: self.options.texts_most]
        started = time.perf_counter_ns()
        if wanted:
            binds = {f"i{at}": one for at, one in enumerate(wanted)}
            sql = script("sql_text").sql.replace(":ids", ", ".join(f":{name}" for name in binds))
            with contextlib.suppress(driver().Error):
                known |= {str(i): without_literals(str(t)) for i, t in self._rows(sql, binds)}
        spent = time.perf_counter_ns() - started if wanted else 0
        names = [column.name for column in statements.columns]
        signature = names.index("signature")
        prints = {row[0]: row[signature] for row in statements.rows if isinstance(row, tuple)}
        rows = [(one, prints.get(one), known[one]) for one in sorted(known)]
        return View(TEXTS, "now", TEXT_COLUMNS, rows, elapsed_ns=spent)

    def _rows(self, sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.arraysize = 1000
            cursor.execute(sql, parameters)
            return [tuple(row) for row in cursor.fetchall()]


def top_statements(statements: View) -> list[str]:
    """Return the statements in any Top SQL list, by values since the start of the instance or the cursor."""
    names = [column.name for column in statements.columns]
    rows = [row for row in statements.rows if isinstance(row, tuple)]
    found: dict[str, None] = {}
    for order in ORDERS:
        at = names.index(order)
        found |= dict.fromkeys(row[0] for row in heapq.nlargest(TEXTS_PER_ORDER, rows, key=lambda r: r[at]))
    return list(found)


def without_literals(text: str) -> str:
    """Return a statement without its string literals, numbers and comments; hints are kept."""
    return _LITERAL.sub(lambda found: "" if found[0].startswith(("/*", "--")) else "?", text)


def _known(before: Snapshot | None) -> dict[str, str]:
    rows_of = before.relation(TEXTS) if before is not None and before.problem(TEXTS) is None else None
    if rows_of is None:
        return {}

    with file_connection() as connection:
        rows = connection.execute(f"select sql_id, query from {rows_of}").fetchall()
    return {str(one): str(text) for one, text in rows}
