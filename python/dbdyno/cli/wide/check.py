"""`dbdyno wide check`: check whether the data satisfy the keys that a map declares."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.wide.options import map_option, open_map, target_option


@click.command("check")
@map_option
@target_option
def command(file: Path, target: str) -> None:
    """Check the keys of a map against the data.

    Each primary key must be unique and without NULL, and each foreign key must refer to an existing row. All rows are
    read. Exit 1 if the data violate a key.
    """
    from dbdyno.wide.keys import check_keys

    broken = False
    where, found = open_map(file, target)
    for one in check_keys(where, found, str(file)):
        click.echo(one.sentence())
        broken = broken or not one.holds
    if broken:
        raise click.exceptions.Exit(1)
