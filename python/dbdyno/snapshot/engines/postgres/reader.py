"""Reading of views with one connection, one transaction and one query per view.

Every view is sent as CSV by COPY, after a savepoint. If the last snapshot of a watch could read all views, the
savepoints are omitted, and the transaction starts again if a view is refused: a savepoint costs the server 0.05 ms, and
all of them take a tenth of a snapshot's time. A failure is reported with the step that would make the view readable.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dbdyno.snapshot.engines.postgres.facts import OWN_MARK
from dbdyno.snapshot.engines.postgres.lock_timeouts import LOCKED, shorten_lock_timeout
from dbdyno.snapshot.engines.postgres.source import Source
from dbdyno.snapshot.engines.postgres.views import available_columns
from dbdyno.snapshot.engines.view import Column, View

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

_PROBE = """
select /* dbdyno */ c.relname::text, a.attname::text, format_type(a.atttypid, null), n.nspname::text
from pg_attribute a join pg_class c on c.oid = a.attrelid
  join pg_namespace n on n.oid = c.relnamespace
where (n.nspname = 'pg_catalog' and c.relname = any(%s)
       or c.relname in ('pg_stat_statements', 'pg_stat_statements_info') and c.relkind = 'v'
          and n.oid = (select extnamespace from pg_extension where extname = 'pg_stat_statements'))
  and a.attnum > 0 and not a.attisdropped
order by c.relname, a.attnum
"""

_CAN_FLUSH = """
select /* dbdyno */ 1 from pg_proc where proname = 'pg_stat_force_next_flush'
  and has_function_privilege(oid, 'execute')
"""

_STEPS = {
    "42501": "grant pg_monitor to the role, and usage of the extension's schema",
    "55P03": "end that session or wait until it ends; the next snapshot will contain the view",
    "57014": "raise --statement-timeout",
    "55000": "put pg_stat_statements into shared_preload_libraries and restart the server",
}


@dataclass(frozen=True, slots=True)
class Part:
    """The result of reading one view over one connection; if it has a `problem`, it has no rows."""

    columns: tuple[Column, ...]
    data: bytes = b""
    elapsed_ns: int = 0
    problem: str | None = None
    next_step: str | None = None


class RestartTransactionError(Exception):
    """Error for a view that was refused without a savepoint, so the transaction has to start again."""


class Reader:
    """Reader of views over one connection, inside the transaction that the caller began."""

    def __init__(self, connection: Connection, names: Sequence[str]) -> None:
        self.connection = connection
        self._probed: dict[str, list[tuple[str, str]]] = {}
        self.schemas: dict[str, str] = {}
        self.locked = ""
        self._careful, self._clean = True, False
        with connection.transaction():
            for view, column, kind, schema in connection.execute(_PROBE, [list(names)]):
                self._probed.setdefault(view, []).append((column, kind))
                self.schemas[view] = schema
            self._flushes = bool(connection.execute(_CAN_FLUSH).fetchone())
            self.flush()

    def begin(self) -> None:
        """Prepare for a snapshot's transaction, which the caller has begun."""
        self.locked = ""
        self._careful, self._clean = not self._clean, True

    def flush(self) -> None:
        """Make the server count this session's activity when its transaction ends and not seconds later.

        The activity can then be subtracted from the next difference. This works on PostgreSQL 15 and later.
        """
        if self._flushes:
            self.connection.execute("select pg_catalog.pg_stat_force_next_flush()")

    def has(self, name: str) -> bool:
        """Return True if this server has the view."""
        return name in self._probed

    def columns_of(self, name: str) -> frozenset[str]:
        """Return the columns that the server's view has."""
        return frozenset(column for column, _ in self._probed.get(name, ()))

    def read(self, source: Source, database: tuple[int, str] | None = None) -> Part:
        """Return one view; `database` (oid, name) is prepended to the columns of a view of a single database.

        Raises:
            RestartTransactionError: The view was refused without a savepoint.
        """
        chosen = available_columns(source, self._probed[source.name])
        columns = tuple(column for _, column in chosen)
        expressions = [sql for sql, _ in chosen]
        keys = ", ".join(f'"{key}"' for key in source.keys if key in {c.name for c in columns})
        if database is not None:
            oid, name = database
            columns = (_DATABASE[0], _DATABASE[1], *columns)
            expressions = [str(oid), "'" + name.replace("'", "''") + "'::text", *expressions]
        rows = source.rows or f'"{self.schemas[source.name]}"."{source.name}"'
        if source.name == "pg_stat_statements":
            rows += "(false)"
        sql = (
            f"copy {OWN_MARK}(select {', '.join(expressions)} from {rows}"
            + (f" where {source.where}" if source.where else "")
            + (f" order by {keys}" if keys else "")
            + ") to stdout (format csv)"
        )
        return self.copy_out(sql, columns)

    def copy_out(self, sql: str, columns: tuple[Column, ...]) -> Part:
        """Return the rows that a COPY sends as CSV, or the reason why the server refused it.

        Raises:
            RestartTransactionError: The query was refused without a savepoint.
        """
        import psycopg

        started = time.perf_counter_ns()
        try:
            with (
                self.connection.transaction() if self._careful else contextlib.nullcontext(),
                self.connection.cursor() as cursor,
                cursor.copy(sql) as copy,
            ):
                data = b"".join(copy)
        except psycopg.OperationalError as error:
            if self.connection.broken or error.sqlstate is None:
                raise
            self._refused(error)
            part = refused_part(error, columns)
            if error.sqlstate != LOCKED:
                return part
            self.locked = self.locked or shorten_lock_timeout(self.connection)
            return replace(part, problem=f"{part.problem}: {self.locked}")
        except psycopg.Error as error:
            self._refused(error)
            return refused_part(error, columns)
        return Part(columns, data, time.perf_counter_ns() - started)

    def _refused(self, error: psycopg.Error) -> None:
        self._clean = False
        if not self._careful:
            raise RestartTransactionError from error


_DATABASE = (
    Column("datid", "key", "count", "BIGINT"),
    Column("datname", "text", "text", "VARCHAR"),
)


def refused_part(error: psycopg.Error, columns: tuple[Column, ...] = ()) -> Part:
    """Return the `Part` of a view that the server refused, with the first line of the error and the next step."""
    said = str(error).strip().splitlines() or [type(error).__name__]
    return Part(columns, problem=said[0], next_step=_STEPS.get(error.sqlstate or ""))


def join_parts(source: Source, parts: Sequence[Part]) -> View:
    """Return the parts of a view, one per database, as one view; it has a problem only if every part has one."""
    whole = [part for part in parts if part.problem is None]
    elapsed = sum(part.elapsed_ns for part in parts)
    scope_by = "datid" if source.scope == "objects" else source.scope_by
    if not whole:
        return View(
            source.name,
            source.scope,
            (),
            [],
            scope_by,
            source.appearance,
            elapsed,
            parts[0].problem,
            parts[0].next_step,
        )
    data = b"".join(part.data for part in whole)
    return View(source.name, source.scope, whole[0].columns, data, scope_by, source.appearance, elapsed)
