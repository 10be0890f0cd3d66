"""`dbdyno model show`: a machine, drawn and explained."""

from __future__ import annotations

import click

from dbdyno.cli.output import Output
from dbdyno.cli.pages import page_options, show_page


@click.command("show")
@click.argument("name", metavar="NAME|FILE")
@page_options
def command(name: str, output: Output) -> None:
    """Show a machine: its parts drawn, and every parameter with unit, meaning and source.

    \b
    dbdyno model show sas-and-flash
    dbdyno model show ./my.toml -o my.svg
    """
    from dbdyno.model.describe import describe

    show_page(describe(name), output)
