"""Collector of a PostgreSQL cluster's statistics: read-only, with timeouts, nothing created or reset.

It uses one connection per database and one transaction per snapshot. Values are copied as CSV from COPY into the
Parquet files without becoming Python objects. No relation is opened except the catalog, so a table locked by DDL does
not block the collector. pg_monitor is sufficient; without it, data of other users is missing, and the report says so.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import Error, SnapshotError, TargetError
from dbdyno.base.json_types import JsonObject
from dbdyno.snapshot.engines.postgres import facts, host, texts
from dbdyno.snapshot.engines.postgres.catalog import STORED_SETTINGS
from dbdyno.snapshot.engines.postgres.facts import FactsReader
from dbdyno.snapshot.engines.postgres.lock_timeouts import open_with_lock_timeout
from dbdyno.snapshot.engines.postgres.reader import Part, Reader, RestartTransactionError, join_parts
from dbdyno.snapshot.engines.postgres.sampler import Sampler
from dbdyno.snapshot.engines.postgres.schema_views import CatalogCache, SettingsCache
from dbdyno.snapshot.engines.postgres.sizes_cache import SizesCache
from dbdyno.snapshot.engines.postgres.views import (
    CLUSTER,
    DATABASE,
    SETTINGS,
    SIZES,
    STATEMENTS,
    STATEMENTS_INFO,
)
from dbdyno.snapshot.engines.protocol import Collector
from dbdyno.snapshot.engines.view import Options, View, unread_view
from dbdyno.snapshot.plans import generic
from dbdyno.snapshot.reading.clock import clock_stamp

if TYPE_CHECKING:
    import psycopg

    from dbdyno.snapshot.store.folder import Snapshot

    Connection = psycopg.Connection[tuple[Any, ...]]

APPLICATION_NAME = "dbdyno snap"
LOGIN_TRANSACTIONS = 2
"""Number of transactions that the server counts while dbdyno connects; the start of a session counts as one."""
SETUP_TRANSACTIONS = 5
"""Number of transactions of a dbdyno session before its first snapshot.

They are the beginning of the session, three for timeouts and privileges, and one query of the catalog.
"""
_NAMES = [source.name for source in (*CLUSTER, SETTINGS, STORED_SETTINGS, *SIZES, *DATABASE)]
_DATABASES = """
select /* dbdyno */ oid::bigint, datname::text,
  case when not datallowconn then 'it allows no connections'
    when not has_database_privilege(oid, 'connect') then 'no right to connect' end
from pg_database where not datistemplate order by datname
"""


class PostgresCollector(Collector):
    """Collector that keeps its connections between the snapshots of a watch; a context manager."""

    def __init__(self, dsn: str, options: Options) -> None:
        super().__init__(options)
        self.problems: list[dict[str, str]] = []
        self._sizing = SizesCache()
        self._seldom, self._settings, self._asked = CatalogCache(), SettingsCache(), FactsReader()
        self._connections: dict[str, Connection] = {}
        self._readers: dict[str, Reader] = {}
        self.own_transactions: dict[str, dict[str, int]] = {"before": {}, "after": {}}
        try:
            self._target = open_with_lock_timeout(dsn)
        except TargetError as error:
            raise _unreachable(error) from error
        self.name = options.name or facts.name_of(self._target)

    def facts(self) -> JsonObject:
        """Return what the last snapshot recorded about the server: identity, epochs, version, role."""
        return {"dsn": self._target.safe_dsn, **self._facts, "problems": self.problems}

    def collect(self, before: Snapshot | None) -> list[View]:
        """Read all views and return their current contents.

        Raises:
            SnapshotError: The login fails, or the server is gone.
        """
        import psycopg

        self.problems = []
        self.own_transactions = {"before": {}, "after": {}}
        if not self._connections and not self._facts:
            self._count("before", self._target.libpq_parameters()["dbname"], LOGIN_TRANSACTIONS)
        try:
            return self._collect(before)
        except TargetError as error:
            raise _unreachable(error) from error
        except psycopg.Error as error:
            self.close()
            raise SnapshotError(
                f"the server closed the connection: {(str(error).strip().splitlines() or ['no message'])[0]}",
                where=self._target.safe_dsn,
                next_step="try again when the server is up; earlier snapshots stay in the store",
            ) from error

    def sampler(self, period_s: float) -> Sampler:
        """Return a sampler of the sessions with its own connection."""
        return Sampler(self._target, period_ns=round(period_s * 1e9))

    def close(self) -> None:
        """Close the connections; the values already read remain available."""
        for connection in self._connections.values():
            connection.close()
        self._connections, self._readers = {}, {}

    def _collect(self, before: Snapshot | None) -> list[View]:
        try:
            return self._views(before)
        except RestartTransactionError:
            return self._views(before)

    def _views(self, before: Snapshot | None) -> list[View]:
        main, reader = self._session(None)
        parts: dict[str, list[Part]] = {}
        with main.transaction():
            _begin(main)
            reader.begin()
            views = [join_parts(CLUSTER[0], [reader.read(CLUSTER[0])])]  # first, because its time is that of the rates
            self._facts = {**self._asked.read(main), **clock_stamp()}
            self._facts |= host.read(main.info.backend_pid, self._facts.get("started_us"))
            views += [join_parts(source, [reader.read(source)]) for source in CLUSTER[1:] if reader.has(source.name)]
            views.append(self._settings.read(reader, SETTINGS, self._facts))
            views.append(join_parts(STORED_SETTINGS, [reader.read(STORED_SETTINGS)]))
            views += self._sizing.read(reader)
            views += self._statements(reader, before)
            wanted = self._databases(main)
            own = [one for one in wanted if one[1] == main.info.dbname]
            for database in own:
                self._objects(reader, database, parts)
            reader.flush()
        self._count("after", main.info.dbname, 1)
        for database in wanted:
            if database not in own:
                self._other(database, parts, views, before)
        self._facts["databases"] = [name for _, name in wanted]
        if not any(view.name == STATEMENTS.name for view in views):
            views.append(_no_statements([name for _, name in wanted]))
        views += [join_parts(source, parts[source.name]) for source in DATABASE if source.name in parts]
        return [*views, *self._plans(wanted)]

    def _plans(self, wanted: list[tuple[int, str]]) -> list[View]:
        """Return the view of generic plans for statements of the databases that are read; empty unless requested."""
        import psycopg

        own = next((one for one in self._readers.items() if one[1].has(STATEMENTS.name)), None)
        if not self.options.plans or own is None:
            return []
        reader, started = own[1], time.monotonic()
        spent = "total_exec_time" if "total_exec_time" in reader.columns_of(STATEMENTS.name) else "total_time"
        schema = '"' + reader.schemas[STATEMENTS.name].replace('"', '""') + '"'
        rows: list[generic.Row] = []
        try:
            some = generic.candidates(reader.connection, schema, spent, [one for one, _ in wanted], self.options.plans)
            for number, name in wanted:
                mine = [one for one in some if one.database == number]
                if mine:
                    main = name == self._connections[""].info.dbname
                    connection, _ = self._session(None if main else name)
                    rows += generic.generic_plan_rows(connection, mine, started + generic.MOST_S)
                    self._count("after", name, 2)
        except (psycopg.Error, Error) as error:
            self._problem(generic.VIEW, own[0], str(error).strip().splitlines()[0])
        return [generic.view(rows, round((time.monotonic() - started) * 1e9))]

    def _session(self, database: str | None) -> tuple[Connection, Reader]:
        """Return the connection to a database and its reader, created on first use and after a lost connection."""
        from dbdyno.snapshot.engines.postgres.own_statements import MarkedCursor

        name = database or ""
        connection = self._connections.get(name)
        if connection is None or connection.closed:
            target = self._target if database is None else self._target.in_database(database)
            connection = target.connect(
                statement_timeout_ms=self.options.statement_timeout_ms,
                lock_timeout_ms=self.options.lock_timeout_ms,
                read_only=True,
                application_name=APPLICATION_NAME,
            )
            connection.cursor_factory = MarkedCursor
            self._connections[name] = connection
            self._readers[name] = Reader(connection, _NAMES)
            self._count("before" if database is None else "after", connection.info.dbname, SETUP_TRANSACTIONS)
        return connection, self._readers[name]

    def _databases(self, main: Connection) -> list[tuple[int, str]]:
        refused: dict[str, str | None] = {}
        found = []
        for oid, name, why in main.execute(_DATABASES):
            refused[str(name)] = why
            found.append((int(oid), str(name)))
        asked = self.options.databases
        if asked is None:
            asked = (main.info.dbname,)
        if asked == ("*",):
            asked = tuple(refused)
        for name in asked:
            why = refused.get(name, "there is no such database")
            if why is not None:
                self._problem("objects", name, why)
        return [one for one in found if one[1] in asked and refused[one[1]] is None]

    def _other(
        self, database: tuple[int, str], parts: dict[str, list[Part]], views: list[View], before: Snapshot | None
    ) -> None:
        import psycopg

        def read() -> tuple[dict[str, list[Part]], list[View]]:
            found: dict[str, list[Part]] = {}
            connection, reader = self._session(database[1])
            with connection.transaction():
                _begin(connection)
                reader.begin()
                self._objects(reader, database, found)
                missing = not any(view.name == STATEMENTS.name for view in views)
                statements = self._statements(reader, before) if missing else []
                reader.flush()
            self._count("after", database[1], 1)
            return found, statements

        try:
            try:
                found, statements = read()
            except RestartTransactionError:
                found, statements = read()
            for name, some in found.items():
                parts.setdefault(name, []).extend(some)
            views += statements
        except (psycopg.Error, Error) as error:
            self._problem("objects", database[1], str(error).strip().splitlines()[0])

    def _objects(self, reader: Reader, database: tuple[int, str], parts: dict[str, list[Part]]) -> None:
        written = self._seldom.write_count(reader)
        for source in DATABASE:
            part = self._seldom.read(reader, source, database, written)
            parts.setdefault(source.name, []).append(part)
            if part.problem is not None:
                self._problem(source.name, database[1], part.problem)

    def _statements(self, reader: Reader, before: Snapshot | None) -> list[View]:
        if not reader.has(STATEMENTS.name):
            return []
        part = reader.read(STATEMENTS)
        views = [join_parts(STATEMENTS, [part])]
        if reader.has(STATEMENTS_INFO.name):
            views.append(join_parts(STATEMENTS_INFO, [reader.read(STATEMENTS_INFO)]))
        if part.problem is None and not self.options.redact:
            views.append(texts.view(reader, views[0], before, self.options.texts_most, self.wanted_texts))
        return views

    def _count(self, when: str, database: str, number: int) -> None:
        """Count dbdyno's own transactions before or after the read of the databases' counters."""
        known = self.own_transactions[when]
        known[database] = known.get(database, 0) + number

    def _problem(self, view: str, database: str, problem: str) -> None:
        self.problems.append({"view": view, "database": database, "problem": problem})


def _no_statements(databases: list[str]) -> View:
    """Return the view of statements marked as unreadable, for databases without the extension."""
    return unread_view(
        STATEMENTS.name,
        STATEMENTS.scope,
        f"the extension is not in the database {', '.join(databases)}",
        "put pg_stat_statements into shared_preload_libraries, restart, and run"
        " `create extension pg_stat_statements` there",
    )


def _begin(connection: Connection) -> None:
    """Make the transaction read one consistent snapshot of all statistics, in standard text formats."""
    import psycopg

    connection.execute(
        "select /* dbdyno */ set_config('timezone', 'UTC', true),"
        " set_config('datestyle', 'ISO', true),"
        " set_config('jit', 'off', true), set_config('search_path', 'pg_catalog', true)"
    )
    try:
        with connection.transaction():  # from PostgreSQL 15 on
            connection.execute("set local stats_fetch_consistency = snapshot")
    except psycopg.errors.UndefinedObject:
        return


def _unreachable(error: TargetError) -> SnapshotError:
    return SnapshotError(error.message, where=error.where, next_step=error.next_step)
