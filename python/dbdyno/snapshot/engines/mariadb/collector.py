"""Collector of a MariaDB server's counters: read-only, with timeouts, nothing created or reset.

It uses one connection; each table is read by one statement, and a failure affects only that table. It needs PROCESS,
and SELECT on performance_schema. With UPDATE on performance_schema.threads as well, the collector turns off the
accounting of its session, so that its statements are not among the top SQL.

Limits: the server loses all counters in a restart. The performance schema identifies tables by name only: whether a
table was dropped and recreated is derived from InnoDB's table number and the counters, or for other storage engines
from the counters only.
"""

from __future__ import annotations

import contextlib
import re
import time
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import SnapshotError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.mariadb import session
from dbdyno.snapshot.engines.mariadb import facts, texts
from dbdyno.snapshot.engines.mariadb.connection import address, connect, driver, error_text
from dbdyno.snapshot.engines.mariadb.sampler import Sampler
from dbdyno.snapshot.engines.mariadb.views import (
    OWN_COUNTERS,
    SOURCES,
    STATEMENTS,
    STATUS,
    STATUS_NOW,
    VARIABLES,
    VOLATILE,
    Source,
    available_columns,
    is_state,
)
from dbdyno.snapshot.engines.protocol import Collector
from dbdyno.snapshot.engines.view import Column, Options, View, unread_view
from dbdyno.snapshot.reading.clock import clock_stamp

if TYPE_CHECKING:
    from dbdyno.snapshot.store.folder import Snapshot

CONNECTION_LOST_ERRORS = {2006, 2013, 1927, 1053}
"""Numbers of errors that mean that the connection is lost."""

LIFE = Column("TABLE_ID", "gauge", "count", "BIGINT")
"""InnoDB's table number; a different number may mean a recreated table with the same name."""


class MariadbCollector(Collector):
    """Collector that keeps its connection between the snapshots of a watch; a context manager."""

    def __init__(self, dsn: str, options: Options) -> None:
        super().__init__(options)
        self._address = address(dsn)
        self.name = options.name or self._address.name
        self._connection: Any = connect(self._address, options)
        self._columns: dict[str, list[tuple[str, str]]] = {}
        self._spent = 0
        self._sampler: Sampler | None = None

    def facts(self) -> JsonObject:
        """Return what the last snapshot recorded about the server: identity, start, version, enabled instruments."""
        return {"dsn": self._address.safe, **self._facts}

    def collect(self, before: Snapshot | None) -> list[View]:
        """Read all views and return their current contents.

        Raises:
            SnapshotError: The server is gone.
        """
        if self._connection is None:
            self._connection = connect(self._address, self.options)
        try:
            return self._collect(before)
        except Exception as error:
            if not isinstance(error, (driver().Error, OSError)):
                raise
            self.close()
            raise SnapshotError(
                f"the server closed the connection: {error_text(error)}",
                where=self._address.safe,
                next_step="try again when the server is up; earlier snapshots stay in the store",
            ) from error

    def sampler(self, period_s: float) -> Sampler:
        """Return a sampler of the sessions with its own connection."""
        self._sampler = Sampler(self._address, period_ns=round(period_s * 1e9))
        return self._sampler

    def close(self) -> None:
        """Close the connection; the values already read remain available."""
        if self._connection is not None:
            with contextlib.suppress(Exception):
                self._connection.close()
        self._connection, self._columns = None, {}

    def _collect(self, before: Snapshot | None) -> list[View]:
        counts, states = self._status()
        self._facts |= facts.read(self._rows)
        views = [states, self._settings()]
        if not self._facts.get("performance_schema"):
            off = ("performance_schema is off", "set performance_schema=ON and restart the server")
            views += [unread_view(source.name, source.scope, *off) for source in SOURCES]
            return [self._with_own(counts), *views, *self._texts(None, before)]
        lives = self._lives()
        for source in SOURCES:
            view = self._read(source, lives if source.scope == "tables" else None)
            views.append(view)
            if source is STATEMENTS and view.problem is None:
                views += self._texts(view, before)
        return [self._with_own(counts), *views]

    def _texts(self, statements: View | None, before: Snapshot | None) -> list[View]:
        """Return the view of the texts of counted statements and of those that sessions ran; empty if not requested."""
        if self.options.redact or (statements is None and self._sampler is None):
            return []
        ours = self._sampler.statements.texts if self._sampler is not None else {}
        return [texts.view(self._rows, statements, before, self.options.texts_most, self.wanted_texts, ours)]

    def _status(self) -> tuple[list[tuple[Any, ...]], View]:
        """Return counters (name, value, value for dbdyno's session) and states, and set the snapshot's time."""
        started = time.perf_counter_ns()
        rows = self._rows(
            "select lower(g.variable_name), g.variable_value, o.variable_value,"
            " cast(unix_timestamp(sysdate(6)) * 1000000 as signed), connection_id()"
            " from information_schema.global_status g"
            " join information_schema.session_status o using (variable_name)"
        )
        self._spent = time.perf_counter_ns() - started
        if not rows:
            raise driver().OperationalError(2027, "the server did not answer a request for its status")
        counts: list[tuple[Any, ...]] = []
        states: list[tuple[Any, ...]] = []
        for name, text, own, *_ in rows:
            if not re.fullmatch(r"-?\d+(\.\d+)?", text or ""):
                continue
            if is_state(name):
                states.append((name, float(text)))
            else:
                counts.append((name, float(text), float(own) if OWN_COUNTERS.fullmatch(name) else None))
        found = dict(states)
        at_us, uptime_s = int(rows[0][3]), int(found.get("uptime", 0))
        self._facts = {
            "at_us": at_us,
            "uptime_s": uptime_s,
            "started_us": at_us - uptime_s * 1_000_000,
            "session": int(rows[0][4]),
            **clock_stamp(),
        }
        return counts, View("global_status_now", "now", STATUS_NOW, states, appearance="fixed")

    def _with_own(self, counts: list[tuple[Any, ...]]) -> View:
        """Return the counters with the part that dbdyno's session added until they were read, and until the end."""
        ended = dict(self._rows("select lower(variable_name), variable_value from information_schema.session_status"))
        rows = [(name, value, own, None if own is None else float(ended[name])) for name, value, own in counts]
        return View("global_status", "status", STATUS, rows, appearance="fixed", elapsed_ns=self._spent)

    def _settings(self) -> View:
        started = time.perf_counter_ns()
        rows = self._rows(
            "select lower(variable_name), variable_value from information_schema.global_variables order by 1"
        )
        kept = [row for row in rows if not VOLATILE.fullmatch(row[0])]
        spent = time.perf_counter_ns() - started
        return View("global_variables", "now", VARIABLES, kept, elapsed_ns=spent)

    def _read(self, source: Source, lives: dict[tuple[str, str], int] | None) -> View:
        started = time.perf_counter_ns()
        try:
            found = available_columns(source, self._probed(source.name))
            wanted = ", ".join(sql for sql, _ in found)
            rows = self._rows(f"select {wanted} from performance_schema.{source.name} where {source.where}")
        except driver().Error as error:
            if is_connection_lost(error):
                raise
            return unread_view(source.name, source.scope, error_text(error), facts.GRANT)
        columns = tuple(column for _, column in found)
        if lives is not None:
            columns = (*columns, LIFE)
            rows = [(*row, lives.get((row[0], row[1]))) for row in rows]
        spent = time.perf_counter_ns() - started
        return View(source.name, source.scope, columns, rows, appearance=source.appearance, elapsed_ns=spent)

    def _lives(self) -> dict[tuple[str, str], int]:
        """Return InnoDB's table number of each table; empty without the privilege PROCESS."""
        try:
            rows = self._rows("select name, table_id from information_schema.innodb_sys_tables")
        except driver().Error as error:
            if is_connection_lost(error):
                raise
            return {}
        found = {}
        for name, number in rows:
            schema, _, table = name.partition("/")
            found[sql_name(schema), sql_name(table)] = int(number)
        return found

    def _probed(self, name: str) -> list[tuple[str, str]]:
        if not self._columns:
            for table, column, kind in self._rows(
                "select table_name, column_name, data_type from information_schema.columns"
                " where table_schema = 'performance_schema' order by table_name, ordinal_position"
            ):
                self._columns.setdefault(table, []).append((column, kind))
        return self._columns.get(name, [])

    def _rows(self, sql: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        return session.rows(self._connection, sql, parameters)


def is_connection_lost(error: BaseException) -> bool:
    """Return True if an error means that the connection is gone."""
    return bool(error.args) and error.args[0] in CONNECTION_LOST_ERRORS


def sql_name(name: str) -> str:
    """Return the SQL name for a name as InnoDB stores it: `a@0024b` is `a$b`.

    The short codes for letters with accents are not decoded: the InnoDB number of a table with such a letter in its
    name is not known.
    """
    return re.sub(r"@([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), name)
