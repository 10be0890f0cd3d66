"""`dbdyno client`: commands on external clients, one file per command."""

from __future__ import annotations

from typing import ClassVar

import click

from dbdyno.cli.main import LazyGroup

ROWS = {
    "check": ("dbdyno.cli.client.check", "Whether a client keeps to the protocol, and what it costs."),
    "list": ("dbdyno.cli.client.list", "The built-in clients, and which are installed."),
}


class _ClientGroup(LazyGroup):
    rows: ClassVar[dict[str, tuple[str, str]]] = ROWS


@click.group("client", cls=_ClientGroup)
def command() -> None:
    """External clients: programs that run a plan's load in place of dbdyno's own."""
