"""Options shared by the commands on wide tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base.errors import WideError
from dbdyno.cli.parameters import FILE

if TYPE_CHECKING:
    from dbdyno.wide.address import Address
    from dbdyno.wide.mapping import WideMap

TARGET = "DBDYNO_CASSANDRA"
map_option = click.option(
    "--map", "file", required=True, type=FILE, help="File with the map, as `dbdyno wide map` writes it."
)
target_option = click.option(
    "--target",
    required=True,
    envvar=TARGET,
    help=f"Keyspace: cassandra://host:9042/keyspace (default: {TARGET} in the environment).",
)


def open_map(file: Path, target: str) -> tuple[Address, WideMap]:
    """Return the address and the map, after checking that both are for the same keyspace.

    Raises:
        WideError: the keyspaces differ, or the map cannot be read.
    """
    from dbdyno.wide.address import address
    from dbdyno.wide.file import read

    where, found = address(target), read(file)
    if found.keyspace != where.keyspace:
        raise WideError(
            f"the map describes keyspace {found.keyspace}, but the target is keyspace {where.keyspace}",
            where=f"{file}: keyspace",
            next_step="name the keyspace of the map in --target, or change the keyspace in the map",
        )
    return where, found
