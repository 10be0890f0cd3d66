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
@click.option("--dsn", help="The engine, e.g. postgresql://user@host/db. Default: embedded.")
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
    from dbdyno.bench.clients.conformance import COST_S, Verdict, examined
    from dbdyno.bench.postgres.clients import examination, own_cost
    from dbdyno.bench.postgres.server import open_target

    known = len(client) == 1 and "/" not in client[0]
    words = client[0] if known and client[0] in BUILTIN else list(client)
    with open_target(dsn, tcp=True) as target:
        yield from examined(examination(target, words))
        rate, each_ns, cpu_ns = own_cost(target, COST_S)
        detail = f"{rate:,.0f}/s, mean {each_ns / 1e3:.0f} us, {cpu_ns / 1e3:.0f} us of CPU each"
        yield Verdict("the same by dbdyno's own client", "told", detail)
