"""`dbdyno device show`: the parameters of a device with their sources."""

from __future__ import annotations

import click

from dbdyno.cli.output import Output, format_options, show_rows


@click.command("show")
@click.argument("name", metavar="NAME|FILE")
@format_options
def command(name: str, output: Output) -> None:
    """Show a device: every parameter with value, unit, meaning and source.

    \b
    dbdyno device show gp3
    dbdyno device show ./my-disk.toml --format csv
    """
    from dbdyno.device.catalogue import device_of, parameters

    device = device_of(name)
    show_rows(parameters(device), output, title=device.machine.title)
