"""Addresses of a Cassandra cluster, `cassandra://user:password@host1,host2:port/keyspace`, and sessions to it.

The password may instead be in DBDYNO_CASSANDRA_PASSWORD; it is never shown or stored. Every request has a timeout, and
reads are retried where a retry changes nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from dbdyno.base.errors import WideError

SCHEME = "cassandra://"
PORT = 9042
REQUEST_S = 60.0
CONNECT_S = 10.0
PASSWORD = "DBDYNO_CASSANDRA_PASSWORD"  # noqa: S105 (the name of a variable)
INSTALL = "run `make setup-wide` or `pip install 'dbdyno[wide]'`"
FORM = "write cassandra://user@host:9042/keyspace"
_KEYSPACE = re.compile(r"[A-Za-z0-9_]{1,48}")


@dataclass(frozen=True)
class Address:
    """Hosts, port and keyspace of a cluster, and the user who connects."""

    hosts: tuple[str, ...]
    port: int
    keyspace: str
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def safe(self) -> str:
        """Return the address with its password removed."""
        user = f"{self.user}@" if self.user else ""
        return f"{SCHEME}{user}{','.join(self.hosts)}:{self.port}/{self.keyspace}"


def address(dsn: str) -> Address:
    """Parse a connection string.

    Raises:
        WideError: The connection string is malformed; the message contains no part of it that may be a secret.
    """
    if not dsn.startswith(SCHEME):
        raise WideError("is not the address of a Cassandra keyspace", next_step=FORM)
    login, at, place = dsn.removeprefix(SCHEME).rpartition("@")
    user, _, password = login.partition(":")
    hosts, slash, keyspace = place.partition("/")
    if at and "/" in login:
        raise WideError("the password contains a / or @ that is not written as %2F or %40", next_step=FORM)
    if not slash or not _KEYSPACE.fullmatch(keyspace):
        raise WideError("the address has no keyspace", next_step=FORM)
    names, _, port = hosts.partition(":")
    if not names or not all(names.split(",")) or (port and not (port.isdigit() and 0 < int(port) < 65536)):
        raise WideError("the address has no host, or a port that is not a number", next_step=FORM)
    secret = unquote(password) or os.environ.get(PASSWORD, "")
    return Address(tuple(names.split(",")), int(port or PORT), keyspace, unquote(user), secret)


def driver() -> Any:
    """Import and return the package `cassandra` with its `cluster` module.

    Raises:
        WideError: The driver is not installed.
    """
    try:
        import cassandra.cluster
    except ImportError:
        raise WideError("the Cassandra driver is not installed", next_step=INSTALL) from None
    return cassandra


@contextlib.contextmanager
def open_session(address: Address, protocol: Any = None) -> Iterator[Any]:
    """Open a driver session in the keyspace, and close it on exit.

    Args:
        address: The address.
        protocol: Class that decodes the driver's messages, or None for the default.

    Raises:
        WideError: The cluster cannot be reached, or the driver reports an error inside the block.
    """
    module = driver()
    from cassandra.auth import PlainTextAuthProvider
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
    from cassandra.policies import DCAwareRoundRobinPolicy, TokenAwarePolicy
    from cassandra.query import tuple_factory

    login = PlainTextAuthProvider(address.user, address.password) if address.user else None
    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy()),
        request_timeout=REQUEST_S,
        row_factory=tuple_factory,
    )
    cluster = Cluster(
        list(address.hosts),
        port=address.port,
        auth_provider=login,
        connect_timeout=CONNECT_S,
        control_connection_timeout=CONNECT_S,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
    )
    limit_s = CONNECT_S
    try:
        session = cluster.connect(address.keyspace)
        limit_s = REQUEST_S
        if protocol is not None:
            session.client_protocol_handler = protocol
        yield session
    except (module.cluster.NoHostAvailable, module.DriverException, OSError) as error:
        raise failure(error, address.safe, limit_s) from None
    finally:
        cluster.shutdown()


STEPS = {
    "Unauthorized": "ask for the permission on this keyspace",
    "AuthenticationFailed": f"give user@ in the address, and the password there or in {PASSWORD}",
    "OperationTimedOut": "check the load and log of the nodes, then run the same command again",
    "ReadTimeout": "run the query again, or restrict it to a key: a replica did not answer in time",
    "WriteTimeout": "run the command again, which writes the same rows once more: a replica did not answer in time",
    "Unavailable": "start the missing replicas, then run the command again",
    "InvalidRequest": "read the tables again with `dbdyno wide map`",
    "NoHostAvailable": "check with `cqlsh HOST PORT` that the node is up and the address is right",
}


def failure(error: Exception, where: str, limit_s: float | None = None) -> WideError:
    """Return a `WideError` for an error of the driver, with the user's next step.

    Args:
        error: The driver's error.
        where: The place shown in the message.
        limit_s: The timeout that applied [s], or None for the timeout of a request.
    """
    inner = getattr(error, "errors", None)
    if isinstance(inner, dict) and inner:
        first = next(iter(inner.values()))
        error = first if isinstance(first, Exception) and type(first).__name__ in STEPS else error
        said = f"{type(first).__name__}: {first}" if isinstance(first, Exception) else str(first)
    else:
        said = str(error)
    if type(error).__name__ == "OperationTimedOut":
        said = f"a node did not answer within {REQUEST_S if limit_s is None else limit_s:g} s"
    said = " ".join(said.split())[:400]
    if "using keyspace" in said or ("does not exist" in said and "eyspace" in said):
        step = "name an existing keyspace; list them with `cqlsh -e 'describe keyspaces'`"
        return WideError("there is no such keyspace, or this user may not read it", where=where, next_step=step)
    return WideError(said, where=where, next_step=STEPS.get(type(error).__name__, STEPS["NoHostAvailable"]))
