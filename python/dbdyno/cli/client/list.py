"""`dbdyno client list`: the built-in clients."""

from __future__ import annotations

import click

from dbdyno.cli.output import Output, format_options, show_rows


@click.command("list")
@format_options
def command(output: Output) -> None:
    """List the built-in clients, with a command to install each one that is missing."""
    from dbdyno.bench.clients.builtin import BUILTIN_CLIENTS, install_command

    rows = []
    for client in BUILTIN_CLIENTS.values():
        gone = client.missing()
        rows.append(
            {
                "client": client.name,
                "installed": "no" if gone else "yes",
                "what": client.what,
                "next": f"{gone}: {install_command(client)}" if gone else "",
            }
        )
    show_rows(rows, output, title="clients")
