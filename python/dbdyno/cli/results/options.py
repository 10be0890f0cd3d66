"""Options shared by commands on kept results."""

from __future__ import annotations

from collections.abc import Sequence

import click

from dbdyno.base.errors import EvidenceError

SHOWN = 10

remote_option = click.option(
    "--remote",
    metavar="NAME",
    help="If PLACE is a branch: the remote from which to fetch it first, such as origin; `results push` also pushes to "
    "it.",
)
machine_option = click.option("--ran-on", "machine", metavar="NAME", help="List only the results from this machine.")


def report_refused(refused: Sequence[EvidenceError]) -> None:
    """Report files that are not results."""
    for error in refused[:SHOWN]:
        click.echo(f"dbdyno: left out: {error}", err=True)
    if len(refused) > SHOWN:
        click.echo(f"dbdyno: and {len(refused) - SHOWN} files more", err=True)
