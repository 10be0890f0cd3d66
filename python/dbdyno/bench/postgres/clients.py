"""Arms that an external client runs on PostgreSQL: how the client is started and how it connects to the server."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from dbdyno.base.errors import PlanError
from dbdyno.bench.clients.arms import client_name, name_of
from dbdyno.bench.clients.builtin import BUILTIN_CLIENTS, locate
from dbdyno.bench.clients.conformance import ClientUnderTest
from dbdyno.bench.clients.job import Job
from dbdyno.bench.clients.load import ClientArm
from dbdyno.bench.clients.network_line import ClientLine

if TYPE_CHECKING:
    from dbdyno.base.core_types import LoadArm
    from dbdyno.bench.postgres.prepare import ReadyArm
    from dbdyno.bench.postgres.server import Postgres

CHECKS_CLIENT = "-c client_connection_check_interval=1000"
"""Option with which a server ends a statement within a second after its client is gone; PostgreSQL 14 and later."""
PROTECTION = (
    *("require_auth", "channel_binding", "sslcrl", "sslcrldir", "sslnegotiation"),
    *("ssl_min_protocol_version", "ssl_max_protocol_version"),
)
"""Connection options that only libpq-based clients honour."""
_PATH = ("host", "port", "user", "password", "dbname")


def client_arm(ready: ReadyArm, arm: LoadArm, seed: int) -> ClientArm:
    """Return an arm prepared for its external client.

    Raises:
        PlanError: The client is not installed, cannot honour a connection option, or a script needs dbdyno's own
            client.
    """
    from dbdyno import _core

    assert ready.arm.client is not None
    started = locate(ready.arm.client, Path(), f"arm {ready.arm.name!r}")
    connection = arm["connection"]
    parameters = parameters_of(ready.target, str(connection["application_name"]), connection["options"])
    refuse_ignored_protection(ready.arm.client, parameters, f"arm {ready.arm.name!r}")
    job = Job({**arm, "protocol": ready.protocol}, _core.Drawer(arm, seed), ready.arm.fetch_size, seed)
    made = ClientArm(job, started.command, {**started.environment, **environment(parameters)}, client_name(ready.arm))
    made.secret = parameters.get("password")
    made.line = _line(ready, arm, parameters)
    return made


def _line(ready: ReadyArm, arm: LoadArm, parameters: Mapping[str, str]) -> ClientLine | None:
    """Return the emulated network of an arm, or None if the arm has none.

    Raises:
        PlanError: The client cannot be connected through an emulated network.
    """
    spec, where = arm.get("network"), f"arm {ready.arm.name!r}"
    if spec is None:
        return None
    host = parameters.get("hostaddr") or parameters.get("host", "")
    if not host or host.startswith("/") or "," in host:
        raise PlanError(
            "an arm with a network and an external client needs one TCP host and port",
            where=where,
            next_step="give host and port in the connection string, or leave network out",
        )
    row = BUILTIN_CLIENTS.get(ready.arm.client) if isinstance(ready.arm.client, str) else None
    named_host = row.libpq if row is not None else parameters.get("sslmode") == "verify-full"
    if not named_host and parameters.get("sslmode") == "verify-full":
        raise PlanError(
            f"the client {client_name(ready.arm)} would check the certificate against 127.0.0.1, the address of the "
            f"emulated network",
            where=where,
            next_step="use a client of libpq (psycopg, pandas, adbc, polars), sslmode=verify-ca, or leave network out",
        )
    return ClientLine(
        spec,
        host,
        int(parameters.get("port", "5432")),
        lambda port: environment(parameters_through_port(parameters, port, named_host)),
    )


def parameters_through_port(parameters: Mapping[str, str], port: int, named_host: bool) -> dict[str, str]:
    """Return the parameters of a connection through a port of 127.0.0.1.

    With `named_host` the parameters keep the server's name, so that libpq can check the certificate against it, and
    `hostaddr` says where to connect.

    >>> parameters_through_port({"host": "db", "port": "5432"}, 4711, True)
    {'host': 'db', 'port': '4711', 'hostaddr': '127.0.0.1'}
    >>> parameters_through_port({"host": "db", "port": "5432"}, 4711, False)
    {'host': '127.0.0.1', 'port': '4711'}
    """
    own = {name: value for name, value in parameters.items() if name != "hostaddr"}
    own["port"] = str(port)
    return {**own, "hostaddr": "127.0.0.1"} if named_host else {**own, "host": "127.0.0.1"}


def parameters_of(target: Postgres, application_name: str, options: str | None) -> dict[str, str]:
    """Return the libpq parameters of a client's connection, including the password."""
    with contextlib.closing(target.connect()) as conn:
        checks = conn.info.server_version >= 140000 and not target.pooled
    all_options = " ".join(filter(None, (options, CHECKS_CLIENT if checks else "")))
    given = {**target.libpq_parameters(), "application_name": application_name, "options": all_options}
    # If the server decides about encryption, it decides once: a client gets what the control connection got.
    given["sslmode"] = target.conninfo()["sslmode"]
    return {name: value for name, value in given.items() if value}


def refuse_ignored_protection(client: str | list[str], parameters: Mapping[str, str], where: str) -> None:
    """Raise `PlanError` if a built-in client without libpq would ignore an option that protects the connection.

    A client that the user provides receives the options and is responsible for honouring them.

    Raises:
        PlanError: The client cannot honour one of the options `PROTECTION`.
    """
    row = BUILTIN_CLIENTS.get(client) if isinstance(client, str) else None
    if row is None or row.libpq:
        return
    for name in PROTECTION:
        if parameters.get(name, "") not in ("", "prefer", "postgres"):
            raise PlanError(
                f"the client {client} does not support {name}",
                where=where,
                next_step="leave the option out, or use a client of libpq: psycopg, pandas, adbc, polars",
            )


def environment(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that tell a client how to connect: DBDYNO_DSN as a URI, and libpq's own variables."""
    from psycopg import pq

    names = {option.keyword.decode(): option.envvar.decode() for option in pq.Conninfo.get_defaults() if option.envvar}
    own = {names[name]: value for name, value in parameters.items() if name in names}
    return {**own, "DBDYNO_DSN": uri(parameters)}


def uri(parameters: Mapping[str, str]) -> str:
    """Return connection parameters as a URI.

    >>> uri({"host": "db", "port": "5432", "user": "a b", "password": "p@ss", "dbname": "d", "sslmode": "require"})
    'postgresql://a%20b:p%40ss@db:5432/d?sslmode=require'
    >>> uri({"host": "/tmp", "user": "u", "dbname": "d"})
    'postgresql://u@/d?host=%2Ftmp'
    """
    own = dict(parameters)
    socket = own["host"].startswith("/") or "," in own["host"]
    kept = [name for name in _PATH if name in own and not (socket and name in ("host", "port"))]
    head = {name: quote(own.pop(name), safe="") for name in kept}
    login = head.get("user", "") + (f":{head['password']}" if "password" in head else "")
    place = head.get("host", "") + (f":{head['port']}" if "port" in head else "")
    rest = f"?{urlencode(own, quote_via=quote)}" if own else ""
    return f"postgresql://{login}@{place}/{head.get('dbname', '')}{rest}"


def client_under_test(target: Postgres, client: str | list[str]) -> ClientUnderTest:
    """Return a client prepared for a conformance test on a server.

    Raises:
        PlanError: The client is not installed, or cannot honour a connection option.
    """
    from dbdyno import _core

    mark = f"dbdyno/check {os.getpid()}"
    arm: LoadArm = {
        "name": "check",
        "connection": {**target.conninfo(), "application_name": mark},
        "scripts": [{"name": "check", "text": "select 1;"}],
        "sessions": 1,
    }
    started = locate(client, Path(), "client")
    parameters = parameters_of(target, mark, None)
    refuse_ignored_protection(client, parameters, "client")
    words = {**started.environment, **environment(parameters)}
    made = ClientArm(Job(arm, _core.Drawer(arm, 7)), started.command, words, name_of(client))
    made.secret = parameters.get("password")

    def alive() -> int:
        with contextlib.closing(target.connect()) as conn:
            row = conn.execute("select count(*) from pg_stat_activity where application_name = %s", [mark]).fetchone()
        return int(row[0]) if row else 0

    return ClientUnderTest(made, alive)
