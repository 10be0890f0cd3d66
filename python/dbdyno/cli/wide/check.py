"""`dbdyno wide check`: whether the keys that a map declares hold in the data."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.wide.options import map_option, opened, target_option


@click.command("check")
@map_option
@target_option
def command(file: Path, target: str) -> None:
    """Hold a map's keys to the data: each primary key is there once and has no NULL, each foreign key leads to a row.
    All rows are read. Exit 1 where a key does not hold.
    """
    from dbdyno.wide.keys import check_keys

    broken = False
    where, found = opened(file, target)
    for one in check_keys(where, found, str(file)):
        click.echo(one.sentence())
        broken = broken or not one.holds
    if broken:
        raise click.exceptions.Exit(1)
