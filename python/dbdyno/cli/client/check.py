"""`dbdyno client check`: the conformance test of external clients."""

from __future__ import annotations

from dataclasses import asdict

import click

from dbdyno.base.errors import PlanError
from dbdyno.cli.output import Output, format_options, show_rows
from dbdyno.cli.parameters import option_with_default
from dbdyno.cli.probe.redo import parse_time

FOUND = 1
"""Exit code if a check failed."""
PATIENCE_LEAST_NS = 10**9


@click.command("check", context_settings={"ignore_unknown_options": True})
@click.argument("client", nargs=-1, required=True, metavar="NAME|COMMAND...")
@click.option(
    "--target",
    "dsn",
    help="Server: postgresql://user@host/db, mariadb://user@host/db, or mariadb for an embedded MariaDB. "
    "[default: an embedded PostgreSQL]",
)
@option_with_default(
    "--patience",
    "patience_ns",
    type=parse_time,
    default="10s",
    help="Time limit for an answer from the client; its start may take three times as long.",
)
@format_options
@click.pass_context
def command(
    context: click.Context,
    client: tuple[str, ...],
    dsn: str | None,
    patience_ns: int,
    output: Output,
) -> None:
    """Test whether a client follows the protocol: a built-in one by name, or your own by its command.

    Every check is printed with its verdict; exit 1 if one failed. If a client hangs in two checks, the remaining ones
    are skipped. Nothing is changed on the server. Write options of the command behind two dashes: `dbdyno client check
    -- java -jar client.jar`.
    """
    from dbdyno.bench.clients.conformance_run import check_results

    if patience_ns < PATIENCE_LEAST_NS:
        raise PlanError(
            "is shorter than the measurement takes", where="--patience", next_step="give a time of 1s or more"
        )
    lines = []
    for verdict in check_results(client, dsn, patience_ns / 1e9):
        lines.append(verdict)
        if output.is_screen:
            click.echo(f"{verdict.verdict:<8}{verdict.check}: {verdict.detail}")
    if not output.is_screen:
        show_rows([asdict(verdict) for verdict in lines], output, title="checks")
    context.exit(FOUND if any(verdict.verdict == "failed" for verdict in lines) else 0)
