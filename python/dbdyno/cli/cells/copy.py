"""`dbdyno cells copy`: copy files to every cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dbdyno.cli.cells.options import access_of, confirm, hosts_from, reach_options
from dbdyno.cli.parameters import FILE, option_with_default


@click.command()
@click.argument("files", nargs=-1, required=True, type=FILE)
@reach_options
@option_with_default(
    "-d",
    "--directory",
    "folder",
    default=".",
    metavar="DIR",
    help="Existing folder on the cells into which the files are copied.",
)
@click.option("--dry-run", is_flag=True, help="Show what would happen; change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Copy the files without asking.")
def command(files: tuple[Path, ...], folder: str, dry_run: bool, yes: bool, **reach: Any) -> None:
    """Copy FILES to every cell, into an existing folder.

    A file arrives completely or not at all, with its mode, and replaces a file of the same name. Exit 2 if a copy
    failed; the other copies continue.

    \b
    dbdyno cells copy -H @cell_group checks.sh --directory /tmp
    """
    from dbdyno.cells.copying import copies_of, copy_everywhere

    hosts = hosts_from(reach)
    copies = copies_of(files, folder)
    for copy in copies:
        click.echo(f"{copy.source} -> {folder}/{copy.name} ({len(copy.data):,} bytes, mode {copy.mode:04o})", err=True)
    click.echo(f"on {', '.join(host.name for host in hosts)}", err=True)
    if dry_run:
        return
    if not yes:
        confirm()
    failed = False
    for copy, answers in copy_everywhere(copies, hosts, access_of(reach)):
        for host, problem, step in answers:
            if problem is None:
                click.echo(f"{host.name}: {copy.name} is there")
                continue
            failed = True
            click.echo(f"dbdyno: {host.name}: {copy.name}: {problem}", err=True)
            if step:
                click.echo(f"  next: {step}", err=True)
    if failed:
        raise click.exceptions.Exit(2)
