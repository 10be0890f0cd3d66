"""`dbdyno client check`: the conformance test of clients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.cli.output import format_options, show_rows

if TYPE_CHECKING:
    from dbdyno.bench.clients.conformance import Verdict

FOUND = 1
"""Exit code: a check failed."""


@click.command("check", context_settings={"ignore_unknown_options": True})
@click.argument("client", nargs=-1, required=True, metavar="NAME|COMMAND...")
@click.option(
    "--dsn", help="The engine: postgresql://user@host/db, mariadb://user@host/db or mariadb. Default: embedded."
)
@format_options
@click.pass_context
def command(
    context: click.Context, client: tuple[str, ...], dsn: str | None, form: str | None, output: Path | None
) -> None:
    """Hold a client to the protocol: a built-in one by its name, or the command that starts your own.

    Every check is printed with its verdict; exit 1 where one failed. Nothing is changed on the server. Write options
    of the command behind two dashes: `dbdyno client check -- java -jar client.jar`.
    """
    lines = []
    for verdict in _verdicts(client, dsn):
        lines.append(verdict)
        if form in (None, "table") and output is None:
            click.echo(f"{verdict.verdict:<8}{verdict.check}: {verdict.detail}")
    if form not in (None, "table") or output is not None:
        show_rows([asdict(verdict) for verdict in lines], form, output, title="checks")
    context.exit(FOUND if any(verdict.verdict == "failed" for verdict in lines) else 0)


def _verdicts(client: tuple[str, ...], dsn: str | None) -> Iterator[Verdict]:
    from dbdyno.bench.clients.builtin import BUILTIN
    from dbdyno.bench.clients.conformance import examined, own_cost
    from dbdyno.bench.kinds import kind_of

    known = len(client) == 1 and "/" not in client[0]
    words = client[0] if known and client[0] in BUILTIN else list(client)
    if kind_of(dsn).name == "mariadb":
        from dbdyno.bench.mariadb import clients as mariadb
        from dbdyno.bench.mariadb.server import open_target as open_mariadb

        with open_mariadb(None if dsn == "mariadb" else dsn, tcp=True) as server:
            yield from examined(mariadb.examination(server, words))
            yield own_cost(server.load_connection("dbdyno"))
        return
    from dbdyno.bench.postgres.clients import examination
    from dbdyno.bench.postgres.server import open_target

    with open_target(dsn, tcp=True) as target:
        yield from examined(examination(target, words))
        yield own_cost(target.conninfo())
