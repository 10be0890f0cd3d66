"""A MariaDB server as a target: its connections, its facts, and its capabilities."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dbdyno.base.errors import TargetError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.live_servers import refuse_live
from dbdyno.bench.engine.target import EngineTarget
from dbdyno.bench.host.machine import data_disk_facts, server_is_here
from dbdyno.bench.mariadb.address import Address, Parameters, address, address_of_parameters, driver, error_text
from dbdyno.bench.mariadb.session import ANSWER_S, open_session, row, rows

if TYPE_CHECKING:
    from dbdyno.bench.mariadb.embedded import EmbeddedMariaDB

OLDEST = (10, 5)
"""Oldest supported version: earlier ones do not report where a setting's value comes from."""
IDENTITY = (
    "coalesce((select variable_value from information_schema.global_variables where variable_name = 'SERVER_UID'),"
    " concat(@@hostname, ' ', @@datadir))"
)
"""SQL expression that identifies a server's data: its unique ID, or the data folder if it has none (10.11.5)."""

_STEPS = {
    "neither TLS nor a server_public_key": "use TLS (ssl_ca=...), or name the file of the server's key: "
    "server_public_key=...",
    "CERTIFICATE_VERIFY_FAILED": "name the file of the authority that signed the server's certificate: ssl_ca=...",
}
"""Next step after a failed login, by words that the error message contains."""
_CHECK = "check address, user and password (MYSQL_PWD, or read_default_file=...)"
"""Next step after any other failed login."""
KEPT_OPTIONS = ("ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_identity", "server_public_key")
"""Connection string options that are kept in addition to those that the connection itself reports."""
_HIDDEN_NAMES = ("password", "passphrase", "secret")
_PROBES = {
    "version": "select concat('MariaDB ', @@version)",
    "server_version": "select @@version",
    "server_id": "select concat(@@hostname, ':', @@port)",
    "started_at": "select date_format(utc_timestamp() - interval variable_value second, '%Y-%m-%dT%H:%i:%sZ')"
    " from information_schema.global_status where variable_name = 'UPTIME'",
    "page_bytes": "select @@innodb_page_size",
    "performance_schema": "select if(@@performance_schema, 'on', 'off')",
    "read_only": "select if(@@read_only, 'on', 'off')",
}
_NON_DEFAULT = """
select lower(variable_name), global_value, lower(global_value_origin) from information_schema.system_variables
where global_value_origin not in ('COMPILE-TIME', 'AUTO') and global_value is not null
  and variable_scope <> 'SESSION ONLY' order by 1
"""


class MariaDB(EngineTarget):
    """A MariaDB server and the parameters to connect to it; `engine` is the embedded server, or None."""

    engine: EmbeddedMariaDB | None

    def __init__(self, address: Address, engine: EmbeddedMariaDB | None = None) -> None:
        self._where = address
        self.engine = engine

    @classmethod
    def open(cls, dsn: str) -> MariaDB:
        """Return the server that a connection string names, after connecting to it once.

        Raises:
            TargetError: The server does not answer, or is not a supported MariaDB.
        """
        target = cls(address(dsn))
        with contextlib.closing(target.connect()) as connection:
            target._resolve(connection)
        return target

    @classmethod
    def from_engine(cls, engine: EmbeddedMariaDB) -> MariaDB:
        """Return the target for a running embedded server."""
        target = cls(address_of_parameters(engine.parameters()), engine)
        with contextlib.closing(target.connect()) as connection:
            target._resolve(connection)
        return target

    def __repr__(self) -> str:
        return f"MariaDB({self.safe_dsn!r})"

    @property
    def safe_dsn(self) -> str:
        """Return the connection string without its password."""
        if self.engine is None:
            return self._where.safe
        return f"mariadb (embedded{'' if self.engine.number == 1 else f' {self.engine.number}'})"

    @property
    def parameters(self) -> Parameters:
        """Return PyMySQL's parameters, including the password."""
        return self._where.parameters.copy()

    def refuse_live(self) -> None:
        """Raise an error if the user's configuration names the server as live.

        Raises:
            TargetError: The configuration names the server as live, or cannot be read.
        """
        if not self.is_embedded:
            given = self._where.parameters
            refuse_live(given.get("unix_socket") or given["host"], int(given["port"]), self.safe_dsn)

    def connect(self, *, answer_s: float | None = ANSWER_S, name: str = "dbdyno") -> Any:
        """Open a connection in autocommit mode.

        Args:
            answer_s: Seconds of silence that are allowed; None for statements that may take hours.
            name: Session name shown by the server.

        Raises:
            TargetError: The server does not answer.
        """
        pymysql = driver()
        try:
            return open_session(self._where.parameters, answer_s=answer_s, name=name)
        except (pymysql.Error, OSError, ValueError, RuntimeError) as error:
            raise self._no_answer(error) from error

    def load_connection(self, name: str) -> dict[str, object]:
        """Return the `connection` object of a load specification; the server shows the load's sessions under `name`."""
        given = self._where.parameters
        if self.engine is not None and self.engine.tcp:
            given = self.engine.tcp_parameters()
        ca = given.get("ssl_ca")
        return {
            "engine": "mariadb",
            "host": given.get("unix_socket") or given["host"],
            "port": given["port"],
            "user": given.get("user", ""),
            "password": given.get("password"),
            "dbname": given.get("database", ""),
            "sslmode": ("verify-full" if given.get("ssl_verify_identity") else "verify-ca") if ca else "disable",
            "sslrootcert": ca,
            "server_public_key": given.get("server_public_key"),
            "application_name": name,
        }

    def identity(self, connection: Any) -> str:
        """Return a key of the server that is the same for every address: its identity, host name and port."""
        uid, host, port = row(connection, f"select {IDENTITY}, @@hostname, @@port")
        return f"mariadb {uid} {host}:{port}"

    def restart(self, options: Mapping[str, str]) -> None:
        """Stop an embedded server and start it again; `options` override its settings."""
        assert self.engine is not None
        self.engine.restart(options)

    def start(self, options: Mapping[str, str]) -> None:
        """Start an embedded server that was stopped; `options` override its settings."""
        assert self.engine is not None
        self.engine.start(options)

    def has_performance_schema(self, connection: Any) -> bool:
        """Return True if the server records waits and this user may read them."""
        with contextlib.suppress(driver().Error):
            if row(connection, "select @@performance_schema")[0]:
                rows(connection, "select 1 from performance_schema.threads limit 1")
                return True
        return False

    def facts(self) -> JsonObject:
        """Return the server and machine facts for the run's manifest; `settings` holds all non-default settings.

        Facts that this user may not see are missing.
        """
        facts: JsonObject = {"target": self.safe_dsn, "owned": self.is_embedded}
        with contextlib.closing(self.connect()) as connection:
            for name, sql in _PROBES.items():
                with contextlib.suppress(driver().Error):
                    facts[name] = row(connection, sql)[0]
            facts["server_is_here"] = self.is_here(connection)
            if facts["server_is_here"] and (data := self.data_directory(connection)):
                facts.update(data_disk_facts(data))
            found = rows(connection, _NON_DEFAULT)
        return self._with_settings(facts, found, shown_value)

    def is_here(self, connection: Any) -> bool:
        """Return True if the connection is local and the server's process runs on this machine."""
        return self.process(connection) is not None

    def process(self, connection: Any) -> int | None:
        """Return the server's process ID on this machine, or None if it runs elsewhere."""
        given = self._where.parameters
        if not (given.get("unix_socket") or given["host"] in ("localhost", "127.0.0.1", "::1")):
            return None
        with contextlib.suppress(driver().Error, OSError, ValueError, IndexError):
            path = Path(str(row(connection, "select @@pid_file")[0]))
            data = self.data_directory(connection)
            file = path if path.is_absolute() or data is None else data / path
            number = int(file.read_text())
            return number if server_is_here(number, program="mariadbd") else None
        return None

    def data_directory(self, connection: Any) -> Path | None:
        """Return the server's data folder, or None if it cannot be read."""
        with contextlib.suppress(driver().Error):
            return Path(str(row(connection, "select @@datadir")[0]))
        return None

    def _resolve(self, connection: Any) -> None:
        """Check the version, and store an option file's parameters so that the load and the guardian use them, too."""
        version = str(connection.get_server_info())
        if "mariadb" not in version.lower():
            raise TargetError(
                f"this is MySQL {version}; expected a MariaDB server",
                where=self.safe_dsn,
                next_step="give the address of a MariaDB server",
            )
        numbers = version.removeprefix("5.5.5-").split("-")[0].split(".")
        if tuple(int(number) for number in numbers[:2]) < OLDEST:
            raise TargetError(
                f"MariaDB {version} is too old",
                where=self.safe_dsn,
                next_step=f"use MariaDB {OLDEST[0]}.{OLDEST[1]} or later",
            )

        def text(value: Any) -> str:
            if not isinstance(value, bytes):
                return str(value or "")
            with contextlib.suppress(UnicodeDecodeError):
                return value.decode()
            return value.decode("latin-1")

        given = self._where.parameters
        found: Parameters = {"host": connection.host, "port": int(connection.port), "user": text(connection.user)}
        if connection.unix_socket:
            found["unix_socket"] = connection.unix_socket
        if connection.db:
            found["database"] = text(connection.db)
        if connection.password:
            found["password"] = text(connection.password)
        kept = cast("Parameters", {name: value for name, value in given.items() if name in KEPT_OPTIONS})
        if kept.keys() & {"ssl_cert", "ssl_key"}:
            raise TargetError(
                "the load cannot log in with a client certificate (ssl_cert, ssl_key)",
                where=self.safe_dsn,
                next_step="give only ssl_ca, and a user with a password",
            )
        self._where = address_of_parameters({**found, **kept})

    def _no_answer(self, error: Exception) -> TargetError:
        if (ended := self._ended()) is not None:
            return ended
        secret = self._where.parameters.get("password")
        text = error_text(error).replace(secret, "...") if secret else error_text(error)
        failed = TargetError(
            f"cannot log in: {text}",
            where=self._where.safe,
            next_step=next((step for words, step in _STEPS.items() if words in text), _CHECK),
        )
        failed.unreachable = "timed out" in text
        return failed


@contextlib.contextmanager
def open_target(dsn: str | None, embedded: EmbeddedMariaDB | None = None) -> Iterator[MariaDB]:
    """Yield the server of `dsn`, or an embedded one (None) that is removed when the context ends.

    With `tcp` of `embedded` dbdyno's own load connects by TCP too, because external clients do so.

    Raises:
        TargetError: The server does not answer, or did not start.
    """
    if dsn is not None:
        yield MariaDB.open(dsn)
        return
    from dbdyno.bench.mariadb.embedded import EmbeddedMariaDB

    with embedded or EmbeddedMariaDB() as engine:
        yield MariaDB.from_engine(engine)


def shown_value(name: str, value: str | None) -> str:
    """Return a setting's value as it may appear in evidence: hidden if it may contain a secret."""
    text = value or ""
    return "(hidden)" if text and any(word in name.lower() for word in _HIDDEN_NAMES) else text
