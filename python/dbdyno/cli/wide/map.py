"""`dbdyno wide map`: write the map of a keyspace to stdout or a file."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import write_text
from dbdyno.cli.parameters import FILE


@click.command("map")
@click.argument("target")
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="WIDE=CHILD[,PARENT]",
    help="Names of the SQL tables for the rows (CHILD) and partitions (PARENT) of the wide table WIDE. Repeatable.",
)
@click.option("-o", "--output", type=FILE, help="Write to this file.")
def command(target: str, names: tuple[str, ...], output: Path | None) -> None:
    """Write the map of the keyspace at TARGET (cassandra://host:9042/keyspace): a file to edit.

    Tables, columns and keys may be renamed, left out, or given another type.

    \b
    dbdyno wide map cassandra://host/shop --name orders_by_customer=orders,customers > map.toml
    """
    from dbdyno.wide.address import address, open_session
    from dbdyno.wide.catalog import read_keyspace
    from dbdyno.wide.file import to_toml
    from dbdyno.wide.mapping import map_of

    where = address(target)
    with open_session(where) as session:
        tables = read_keyspace(session, where.keyspace)
    text = to_toml(map_of(where.keyspace, tables, dict(_parse_name(one) for one in names)))
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)


def _parse_name(given: str) -> tuple[str, list[str]]:
    wide, sign, rest = given.partition("=")
    parts = [one.strip() for one in rest.split(",")]
    if not sign or not wide or not all(parts) or len(parts) > 2:
        raise click.UsageError(f"--name {given}: write WIDE=CHILD or WIDE=CHILD,PARENT")
    return wide, parts
