"""Arms that an external client runs on MariaDB: how the client is started and how it connects to the server."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dbdyno.base.errors import PlanError
from dbdyno.bench.clients.arms import client_name, name_of, refuse_other_engine
from dbdyno.bench.clients.builtin import locate
from dbdyno.bench.clients.check_statements import MARIADB
from dbdyno.bench.clients.conformance import ClientUnderTest
from dbdyno.bench.clients.job import Job
from dbdyno.bench.clients.load import ClientArm
from dbdyno.bench.clients.network_line import ClientLine
from dbdyno.bench.mariadb.session import row
from dbdyno.study.plan.plan import Arm

if TYPE_CHECKING:
    from dbdyno.base.core_types import LoadArm
    from dbdyno.bench.mariadb.prepare import ReadyArm
    from dbdyno.bench.mariadb.server import MariaDB


_ALIVE = """select count(*) from performance_schema.session_connect_attrs
where attr_name = 'program_name' and attr_value = %s"""


def client_arm(own: ReadyArm, arm: LoadArm, seed: int) -> ClientArm:
    """Return an arm prepared for its external client.

    Raises:
        PlanError: The client is not installed or cannot connect, or a script needs dbdyno's own client.
    """
    from dbdyno import _core

    assert own.arm.client is not None
    where = f"arm {own.arm.name!r}"
    started = locate(own.arm.client, Path(), where)
    environment = environment_of(arm["connection"], where)
    job = Job({**arm, "protocol": own.protocol}, _core.Drawer(arm, seed), None, seed)
    made = ClientArm(job, started.command, {**started.environment, **environment}, client_name(own.arm))
    made.secret = environment.get("MARIADB_PASSWORD")
    if (spec := arm.get("network")) is not None:
        there = arm["connection"]
        made.line = ClientLine(
            spec,
            str(there["host"]),
            int(there["port"]),
            lambda port: environment_of({**there, "host": "127.0.0.1", "port": port}, where),
        )
    return made


def client_under_test(target: MariaDB, client: str | list[str]) -> ClientUnderTest:
    """Return a client prepared for a conformance test on a server.

    Raises:
        PlanError: The client is not installed, has no MariaDB driver, or cannot connect.
    """
    from dbdyno import _core

    refuse_other_engine(Arm("check", client=client), "mariadb", "client")
    mark = f"dbdyno/check {os.getpid()}"
    arm: LoadArm = {
        "name": "check",
        "connection": target.load_connection(mark),
        "scripts": [{"name": "check", "text": "select 1;"}],
        "sessions": 1,
    }
    started = locate(client, Path(), "client")
    environment = environment_of(arm["connection"], "client")
    made = ClientArm(
        Job(arm, _core.Drawer(arm, 7)), started.command, {**started.environment, **environment}, name_of(client)
    )
    made.secret = environment.get("MARIADB_PASSWORD")

    def alive() -> int:
        with contextlib.closing(target.connect()) as connection:
            return int(row(connection, _ALIVE, [mark])[0])

    return ClientUnderTest(made, alive, MARIADB)


def environment_of(connection: Any, where: str) -> dict[str, str]:
    """Return the variables that tell a client how to connect: DBDYNO_DSN as a URI, and MARIADB_HOST and others.

    Raises:
        PlanError: The connection uses a Unix socket, or must check the name in the server's certificate.
    """
    host = str(connection["host"])
    if host.startswith("/"):
        raise PlanError(
            "an external client connects by TCP, but the connection string names a Unix socket",
            where=where,
            next_step="give host and port: mariadb://user@127.0.0.1:3306/database",
        )
    if connection.get("sslmode") == "verify-full":
        raise PlanError(
            "an external client cannot check the name in the server's certificate (ssl_verify_identity)",
            where=where,
            next_step="use dbdyno's own client, or leave ssl_verify_identity out",
        )
    given = {
        "HOST": host,
        "PORT": str(connection["port"]),
        "USER": connection["user"],
        "PASSWORD": connection.get("password"),
        "DATABASE": connection["dbname"],
        "SSL_CA": connection.get("sslrootcert"),
        "PROGRAM_NAME": connection["application_name"],
    }
    login = quote(connection["user"], safe="")
    password = connection.get("password")
    login += f":{quote(password, safe='')}" if password else ""
    place = f"[{host}]" if ":" in host else host
    uri = f"mariadb://{login}@{place}:{connection['port']}/{quote(connection['dbname'], safe='')}"
    return {**{f"MARIADB_{name}": str(value) for name, value in given.items() if value}, "DBDYNO_DSN": uri}
