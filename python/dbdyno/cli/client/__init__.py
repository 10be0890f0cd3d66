"""`dbdyno client`: commands on external clients, one file per command."""

from __future__ import annotations

import click

from dbdyno.cli.main import LazyGroup

ROWS = {
    "check": ("dbdyno.cli.client.check", "Check whether a client follows the protocol, and what it costs."),
    "list": ("dbdyno.cli.client.list", "The built-in clients, and which are installed."),
}


@click.group("client", cls=LazyGroup, rows=ROWS)
def command() -> None:
    """External clients: programs that run a plan's load in place of dbdyno's own."""
