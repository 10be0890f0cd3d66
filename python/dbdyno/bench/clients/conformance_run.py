"""Conformance check of a client against a server of the engine that a target names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.bench.clients.builtin import BUILTIN_CLIENTS
from dbdyno.bench.clients.conformance import FAILED, PATIENCE_S, REMAINING_CHECKS, CheckResult, ClientUnderTest, examine
from dbdyno.bench.clients.costs import costs
from dbdyno.bench.kinds import kind_of


def check_results(client: tuple[str, ...], dsn: str | None, patience_s: float = PATIENCE_S) -> Iterator[CheckResult]:
    """Yield a verdict for each check of a client.

    Args:
        client: The name of a built-in client, or the command that starts the client.
        dsn: Target; None means the embedded PostgreSQL.
        patience_s: Seconds that the client may take to answer.
    """
    known = len(client) == 1 and "/" not in client[0]
    words = client[0] if known and client[0] in BUILTIN_CLIENTS else list(client)
    if kind_of(dsn).name == "mariadb":
        from dbdyno.bench.mariadb import clients as mariadb
        from dbdyno.bench.mariadb.embedded import EmbeddedMariaDB
        from dbdyno.bench.mariadb.server import open_target as open_mariadb

        own = EmbeddedMariaDB(tcp=True) if dsn == "mariadb" else None
        with open_mariadb(None if own else dsn, own) as server:
            yield from _all_verdicts(
                mariadb.client_under_test(server, words), server.load_connection("dbdyno"), patience_s
            )
        return
    from dbdyno.bench.postgres.clients import client_under_test
    from dbdyno.bench.postgres.server import open_target

    with open_target(dsn, tcp=True) as target:
        yield from _all_verdicts(client_under_test(target, words), target.conninfo(), patience_s)


def _all_verdicts(client: ClientUnderTest, connection: Mapping[str, Any], patience_s: float) -> Iterator[CheckResult]:
    """Yield the verdicts of the checks, and the client's cost if it starts and does not hang."""
    last = None
    client.set_patience(patience_s)
    for last in examine(client):
        yield last
    if last is not None and not (last.check in ("starts", REMAINING_CHECKS) and last.verdict == FAILED):
        yield from costs(client, connection)
