"""A live PostgreSQL server as a target: its connections, its facts, and reasons why it cannot run something.

    with open_target(None) as target:                           # an embedded server, removed at the end
    with open_target("postgresql://me@db1/app") as target:      # a server that already runs

Connection strings are libpq's own: URI or key=value, PG* variables, .pgpass and service files are honoured, because
libpq itself resolves them. The load generator then gets the concrete host, port, user, database and password of the
server that libpq reached. Passwords appear in no message, no `repr` and no fact.
"""

from __future__ import annotations

import contextlib
import copy
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString

from dbdyno.base.errors import TargetError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.live_servers import refuse_live
from dbdyno.bench.engine.target import EngineTarget
from dbdyno.bench.host.machine import server_is_here
from dbdyno.bench.postgres.data_folder import disk_facts
from dbdyno.bench.postgres.login import login_error
from dbdyno.bench.postgres.shown_settings import shown_value
from dbdyno.bench.postgres.wire_options import load_connection, refusal

if TYPE_CHECKING:
    # Not imported at run time: connecting must not wait for modules that start servers and undo changes.
    import psycopg

    from dbdyno.bench.engine.volumes import Volume
    from dbdyno.bench.guardian import Guardian
    from dbdyno.bench.postgres.binaries import Binaries
    from dbdyno.bench.postgres.embedded import EmbeddedPostgres
    from dbdyno.bench.postgres.session import Session
    from dbdyno.bench.postgres.setting_values import SettingValue
    from dbdyno.bench.undo import SqlUndo

    Connection = psycopg.Connection[tuple[Any, ...]]

CONNECT_TIMEOUT_S = 10
OLDEST_VERSION_NUM = 100000
CONTROL_NAME = "dbdyno control"

GSSAPI_SINCE = 120000
_OF_SESSION: LiteralString = """
select /* dbdyno */ pg_backend_pid(), (select encrypted from pg_stat_gssapi where pid = pg_backend_pid())
"""
_NON_DEFAULT = """
select name, current_setting(name, true), source from pg_settings
where source not in ('default', 'override', 'client', 'session') order by name
"""

# Keywords that each connection sets itself, or that libpq has already resolved.
_OWN_WORDS = {
    "application_name",
    "fallback_application_name",
    "client_encoding",
    "service",
    "servicefile",
    "target_session_attrs",
    "load_balance_hosts",
}

_PROBES: dict[str, LiteralString] = {
    "version": "select version()",
    "server_version": "select current_setting('server_version')",
    "version_num": "select current_setting('server_version_num')::int",
    "database_bytes": "select pg_database_size(current_database())",
    "system_identifier": "select system_identifier::text from pg_control_system()",
    "started_at": "select to_char(pg_postmaster_start_time() at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')",
    "in_recovery": "select pg_is_in_recovery()",
    "block_bytes": "select current_setting('block_size')::int",
    "data_checksums": "select current_setting('data_checksums')",
}


class Postgres(EngineTarget):
    """A server that has answered once, from `open_target`, `open` or `from_engine`; `engine` is set if embedded."""

    engine: EmbeddedPostgres | None

    def __init__(
        self, given: Mapping[str, Any], engine: EmbeddedPostgres | None = None, *, keep_first: bool = False
    ) -> None:
        import psycopg

        from dbdyno.bench.postgres.session import open_session

        self.engine = engine
        self._spare: Session | None = None
        self._parameters = {str(k): str(v) for k, v in given.items() if v is not None}
        self._parameters.setdefault("connect_timeout", str(CONNECT_TIMEOUT_S))
        try:
            conn = open_session(self._arguments(CONTROL_NAME))
            with contextlib.ExitStack() as ending:
                ending.callback(conn.close)
                vouches = self._resolve(conn)
                if self._options.get("gssencmode") == "prefer":
                    # The load cannot encrypt by GSSAPI, so the control connection must not either.
                    self._parameters["gssencmode"] = "disable"
                    if not vouches:
                        conn.close()
                        conn = open_session(self._arguments(CONTROL_NAME))
                        ending.callback(conn.close)
                        self._resolve(conn)
                if keep_first and not self.pooled:
                    self._spare = conn
                    ending.pop_all()
        except (psycopg.Error, UnicodeError) as error:
            raise self._no_answer(error) from None

    @classmethod
    def open(cls, dsn: str, *, keep_first: bool = False) -> Postgres:
        """Return the server of a connection string; with `keep_first` the first `connect` reuses the first connection.

        Raises:
            TargetError: The string is not a PostgreSQL connection string, or the server does not answer.
        """
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        scheme = re.match(r"([a-z][a-z0-9+.-]*)://", dsn, re.I)
        if scheme and scheme[1].lower() not in ("postgres", "postgresql"):
            raise TargetError(
                f"expected a PostgreSQL URL, found {scheme[1]}://",
                next_step="write postgresql://user@host:port/database; use mariadb:// only with `dbdyno run`, "
                "and other engines only with `dbdyno snap take`",
            )
        try:
            given = conninfo_to_dict(dsn)
        except (psycopg.Error, UnicodeError) as error:
            raise TargetError(
                f"the target's connection string cannot be read: {_without_quotes(str(error))}",
                next_step="write postgresql://user@host:port/database, or host=... dbname=...",
            ) from None
        return cls(given, keep_first=keep_first)

    @classmethod
    def from_engine(cls, engine: EmbeddedPostgres, *, tcp: bool = False) -> Postgres:
        """Return the target for a running embedded server, connected by its socket or by TCP."""
        return cls(engine.tcp_conninfo() if tcp else engine.conninfo(), engine)

    def __del__(self) -> None:
        # The kept first connection may never have been used.
        spare = getattr(self, "_spare", None)
        if spare is not None:
            spare.close()

    def __repr__(self) -> str:
        return f"Postgres({self.safe_dsn!r}, owned={self.is_embedded})"

    @property
    def safe_dsn(self) -> str:
        """Return the connection string without password and options."""
        from psycopg.conninfo import make_conninfo

        shown = ("host", "port", "user", "dbname", "sslmode")
        known = {key: self._parameters[key] for key in shown if key in self._parameters}
        if known.get("sslmode") == "prefer":
            del known["sslmode"]
        return make_conninfo("", **known)

    def refuse_live(self) -> None:
        """Raise an error if the user's configuration names the server as live.

        Raises:
            TargetError: The configuration names the server as live, or cannot be read.
        """
        if not self.is_embedded:
            refuse_live(self._parameters["host"], int(self._parameters["port"]), self.safe_dsn)

    def libpq_parameters(self) -> dict[str, str]:
        """Return all libpq parameters, including the password; send them only through a pipe, never to a file."""
        return {**self._parameters, "application_name": CONTROL_NAME}

    def conninfo(self) -> JsonObject:
        """Return the `connection` object of a load specification: concrete values, including the password.

        Raises:
            TargetError: The load's client cannot honour an option.
        """
        return load_connection({**self._options, **self._parameters}, encrypted=self._encrypted)

    def connect(
        self,
        autocommit: bool = True,
        *,
        statement_timeout_ms: int | None = None,
        lock_timeout_ms: int | None = None,
        read_only: bool = False,
        application_name: str = CONTROL_NAME,
        stop: Callable[[], bool] | None = None,
    ) -> Connection:
        """Open a connection without prepared statements.

        `statement_timeout_ms`: None for statements that answer immediately, 0 for those that may take hours. `stop` is
        called while a statement runs; the statement is cancelled when it returns True.

        Raises:
            TargetError: The server does not answer.
        """
        import psycopg

        wanted = {
            "statement_timeout": statement_timeout_ms,
            "lock_timeout": lock_timeout_ms,
            "default_transaction_read_only": "on" if read_only else None,
        }
        try:
            conn = self._kept_connection(application_name, _answer_s(statement_timeout_ms), stop)
            for name, value in wanted.items():
                # Behind a pooler the setting would stay in a server process that other clients get.
                if value is not None and not self.pooled:
                    conn.execute("select /* dbdyno */ set_config(%s, %s, false)", [name, str(value)])
            conn.autocommit = autocommit
        except psycopg.Error as error:
            raise self._no_answer(error) from None
        return conn

    def _kept_connection(
        self, application_name: str, answer_s: float | None, stop: Callable[[], bool] | None
    ) -> Connection:
        from dbdyno.bench.postgres.session import open_session, set_time_limits

        spare, self._spare = self._spare, None
        if spare is None:
            return open_session(self._arguments(application_name), answer_s=answer_s, stop=stop)
        spare.execute("select /* dbdyno */ set_config('application_name', %s, false)", [application_name])
        set_time_limits(spare, self._arguments(application_name), answer_s, stop)
        return spare

    def in_database(self, name: str) -> Postgres:
        """Return the same server and role with another database; the server is not contacted yet."""
        other = copy.copy(self)
        other._spare = None
        other._parameters = {**self._parameters, "dbname": name}
        return other

    def restart(self) -> None:
        """Restart the server.

        Raises:
            TargetError: dbdyno did not start this server.
        """
        if self.engine is None:
            raise TargetError(
                "dbdyno restarts only engines that it started",
                where=self.safe_dsn,
                next_step="run the study on the embedded engine",
            )
        self.engine.restart()

    def sql_undo(self, label: str, statements: Sequence[str], backends: Sequence[int] = ()) -> SqlUndo:
        """Return an undo that runs these statements; it is retried for hours if dbdyno did not start the server."""
        from dbdyno.bench.undo import SqlUndo

        patience_s = 2.0 if self.is_embedded else 10.0
        parameters = self.libpq_parameters()
        return SqlUndo(label, parameters, tuple(statements), tuple(backends), patience_s, lasting=not self.is_embedded)

    def identity(self, conn: Connection) -> str:
        """Return a key that distinguishes this server from others: its system identifier, otherwise host and port."""
        known = _first_value(conn, _PROBES["system_identifier"])
        return str(known or f"{self._parameters['host']}:{self._parameters['port']}")

    def refusal(self, kind: str) -> str | None:
        """Return None if a workload of this kind (read, write, schema, redo) can run here, otherwise the reason."""
        refused = refusal(self._options)
        if refused:
            return refused
        if kind == "read":
            return None
        with contextlib.closing(self.connect()) as conn:
            row = conn.execute(
                "select pg_is_in_recovery(), current_setting('default_transaction_read_only'),"
                " has_database_privilege(current_database(), 'create'), current_user::text"
            ).fetchone()
        recovering, read_only, may_create, role = row or (False, "off", False, "")
        reasons = {
            f"'{kind}' is not a kind of workload (read, write, schema, redo)": kind not in ("write", "schema", "redo"),
            "the server is a standby: it accepts no writes and generates no WAL": recovering,
            "sessions are read-only here (default_transaction_read_only = on)": read_only == "on",
            f"the role '{role}' may not create a schema in this database": kind == "schema" and not may_create,
        }
        return next((reason for reason, holds in reasons.items() if holds), None)

    def facts(self) -> JsonObject:
        """Return the server and machine facts for the run's manifest; `settings` holds all non-default settings.

        Facts that this role may not see are missing.
        """
        facts: JsonObject = {"target": self.safe_dsn, "owned": self.is_embedded}
        with contextlib.closing(self.connect(statement_timeout_ms=5000)) as conn:
            for name, sql in _PROBES.items():
                value = _first_value(conn, sql)
                if value is not None:
                    facts[name] = value
            facts["server_is_here"] = self.is_here(conn)
            if facts["server_is_here"]:
                facts.update(disk_facts(self.data_directory(conn)))
            rows = conn.execute(_NON_DEFAULT).fetchall()
        return self._with_settings(facts, rows, shown_value)

    def is_here(self, conn: Connection) -> bool:
        """Return True if the server's address is local and its process runs on this machine."""
        pid = _first_value(conn, "select pg_backend_pid()")
        return _is_local(self._reached) and pid is not None and server_is_here(int(pid))

    def data_directory(self, conn: Connection) -> Path | None:
        """Return the server's data folder, or None if the role may not know it."""
        path = _first_value(conn, "select setting from pg_settings where name = 'data_directory'")
        return Path(str(path)) if path else None

    def _arguments(self, application_name: str) -> dict[str, object]:
        return {
            **self._parameters,
            "application_name": application_name,
            "client_encoding": "UTF8",
            "autocommit": True,
        }

    def _resolve(self, conn: Connection) -> bool:
        """Store what the server is and how it was reached; return True if it certainly uses no GSSAPI encryption."""
        info = conn.info
        if info.server_version < OLDEST_VERSION_NUM:
            raise TargetError(
                f"PostgreSQL {info.parameter_status('server_version')} is too old",
                where=info.host,
                next_step="use PostgreSQL 10 or newer",
            )
        # Values from the environment or a service file hold for all later connections, the guardian's included.
        self._options = {o.keyword.decode(): o.val.decode() for o in conn.pgconn.info if o.val is not None}
        default = {o.keyword.decode(): (o.compiled or b"").decode() for o in conn.pgconn.info}
        for keyword, value in self._options.items():
            if keyword not in _OWN_WORDS and value and value != default[keyword]:
                self._parameters[keyword] = value
        self._encrypted = bool(conn.pgconn.ssl_in_use)
        self._parameters.update(host=info.host, port=str(info.port), user=info.user, dbname=info.dbname)
        if info.password:
            self._parameters["password"] = info.password
        if not info.host.startswith("/") and info.hostaddr:
            # A name may have several addresses: load and control must reach the same server.
            self._parameters["hostaddr"] = info.hostaddr
        asked = _OF_SESSION if info.server_version >= GSSAPI_SINCE else "select /* dbdyno */ pg_backend_pid(), null"
        row = conn.execute(asked).fetchone()
        self.pooled = row is not None and row[0] != info.backend_pid
        self._reached = self._parameters.get("hostaddr", info.host)
        return row is not None and row[1] is False and not self.pooled

    def _no_answer(self, error: Exception) -> TargetError:
        import psycopg

        if (ended := self._ended()) is not None:
            return ended
        secrets = [self._parameters.get(name) for name in ("password", "sslpassword")]
        failed = login_error(error, self.safe_dsn or "target", [secret for secret in secrets if secret])
        failed.unreachable = isinstance(error, psycopg.errors.ConnectionTimeout)
        return failed


@contextlib.contextmanager
def open_target(
    dsn: str | None = None,
    *,
    settings: Mapping[str, SettingValue] | None = None,
    guardian: Guardian | None = None,
    workdir: Path | None = None,
    keep: bool = False,
    binaries: Binaries | None = None,
    initdb: Sequence[str] = (),
    tcp: bool = False,
    volumes: Sequence[Volume] = (),
) -> Iterator[Postgres]:
    """Yield the server of `dsn`, or an embedded one (None or 'embedded') that is removed when the context ends.

    All arguments but `dsn` are for the embedded server; see `EmbeddedPostgres`.

    Raises:
        TargetError: The server does not answer, or did not start.
    """
    if dsn is not None and dsn != "embedded":
        yield Postgres.open(dsn)
        return
    from dbdyno.bench.postgres.embedded import EmbeddedPostgres

    own = EmbeddedPostgres(
        workdir, settings, guardian=guardian, keep=keep, binaries=binaries, initdb=initdb, volumes=volumes
    )
    with own as engine:
        yield Postgres.from_engine(engine, tcp=tcp)


def _answer_s(statement_timeout_ms: int | None) -> float | None:
    """Return how many seconds a connection may be silent; None if the server is to be probed instead."""
    from dbdyno.bench.postgres.session import ANSWER_S, GRACE_S

    if statement_timeout_ms is None:
        return ANSWER_S
    return statement_timeout_ms / 1000 + GRACE_S if statement_timeout_ms else None


def _first_value(conn: Connection, sql: LiteralString) -> Any:
    import psycopg

    try:
        row = conn.execute(sql).fetchone()
    except psycopg.Error:
        return None
    return row[0] if row else None


def _is_local(host: str) -> bool:
    if host.startswith(("/", "@")) or host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def _without_quotes(message: str) -> str:
    """Return libpq's message without its quoted parts, which may be the password."""
    return re.sub(r'".*"', '"..."', message.strip(), flags=re.S)
