"""`dbdyno cells import`: archived CellCLI output as evidence."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import share_option
from dbdyno.cli.parameters import FILE, PATH

SHOWN = 20


@click.command()
@click.argument("files", nargs=-1, required=True, type=FILE)
@share_option
@click.option("--out", required=True, metavar="RUN", type=PATH, help="Run folder to create.")
@click.option(
    "--cell", default="", metavar="NAME", help="Name of the cell, if neither FILES nor their names contain it."
)
def command(files: tuple[Path, ...], out: Path, cell: str) -> None:
    """Import FILES that CellCLI, dcli or cellsrvstat printed.

    They are text, XML, JSON, CSV, metric history or ExaWatcher's archive, plain or packed (bz2, gz, xz). Lines that are
    not understood are listed; all others are imported. Exit 2 if there were such lines, or if a cell printed an error.

    \b
    dbdyno cells import monday.txt tuesday.txt --cell exa1cel01 --out week
    dbdyno cells import *CellSrvStatExaWatcher*.dat.bz2 --out night
    """
    from dbdyno.cells.archive import import_files
    from dbdyno.cells.findings import AMBIGUOUS_NUMBER, FOREIGN_NUMBER, OTHER_LANGUAGE

    made = import_files(files, out, cell=cell)
    beside = f", {made.alerts:,} alert(s)" if made.alerts else ""
    beside += f", what {made.described} cell(s) are" if made.described else ""
    click.echo(f"{made.run.path}: {made.values:,} values in {made.rounds:,} round(s){beside}", err=True)
    for error in made.refused:
        click.echo(f"dbdyno: {error}", err=True)
    for file, told in made.errors[:SHOWN]:
        click.echo(f"dbdyno: {file}:{told.line}: {told.cell}: {told.code}: {told.message}", err=True)
    for file, entry in made.unread[:SHOWN]:
        click.echo(f"dbdyno: {file}:{entry.line}: {entry.why}: {entry.text[:80]!r}", err=True)
    more = sum(max(0, len(told) - SHOWN) for told in (made.errors, made.unread))
    if more:
        click.echo(f"dbdyno: and {more} lines more", err=True)
    if any(entry.why in (FOREIGN_NUMBER, AMBIGUOUS_NUMBER) for _, entry in made.unread):
        click.echo(f"  next: {OTHER_LANGUAGE}", err=True)
    click.echo(f"next: dbdyno cells diff BEFORE {made.run.path}", err=True)
    if made.unread or made.errors or made.refused:
        raise click.exceptions.Exit(2)
