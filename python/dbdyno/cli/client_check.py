"""`dbdyno client check`: the conformance test of clients."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from dbdyno.cli.output import format_options, show_rows

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
    from dbdyno.bench.clients.against import verdicts

    lines = []
    for verdict in verdicts(client, dsn):
        lines.append(verdict)
        if form in (None, "table") and output is None:
            click.echo(f"{verdict.verdict:<8}{verdict.check}: {verdict.detail}")
    if form not in (None, "table") or output is not None:
        show_rows([asdict(verdict) for verdict in lines], form, output, title="checks")
    context.exit(FOUND if any(verdict.verdict == "failed" for verdict in lines) else 0)
