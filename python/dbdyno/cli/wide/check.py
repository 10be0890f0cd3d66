"""`dbdyno wide check`: whether the keys that a map declares hold in the data."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.wide.options import map_option, open_map, target_option


@click.command("check")
@map_option
@target_option
def command(file: Path, target: str) -> None:
    """Check the keys of a map against the data.

    Each primary key must be unique and have no NULL, and each foreign key must lead to a row. All rows are read. Exit 1
    where a key does not hold.
    """
    from dbdyno.wide.keys import check_keys

    broken = False
    where, found = open_map(file, target)
    for one in check_keys(where, found, str(file)):
        click.echo(one.sentence())
        broken = broken or not one.holds
    if broken:
        raise click.exceptions.Exit(1)
