"""`dbdyno cells import`: archived answers of CellCLI as evidence."""

from __future__ import annotations

from pathlib import Path

import click

SHOWN = 20


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--out", required=True, metavar="RUN", type=click.Path(path_type=Path),
              help="The run folder to be made.")  # fmt: skip
def command(files: tuple[Path, ...], out: Path) -> None:
    """FILES of what CellCLI or dcli printed (text, XML, JSON, metric history) as evidence.

    Text pasted with blanks for tabs is understood. Lines that are not understood are listed; the
    rest is kept. Exit 2 when there were any.

    \b
    dbdyno cells import monday.txt tuesday.txt --out week
    """
    from dbdyno.cells.archive import import_files

    made = import_files(files, out)
    click.echo(f"{made.run.path}: {made.values:,} values in {made.rounds:,} round(s)", err=True)
    for error in made.refused:
        click.echo(f"dbdyno: {error}", err=True)
    for file, entry in made.unread[:SHOWN]:
        click.echo(f"dbdyno: {file}:{entry.line}: {entry.why}: {entry.text[:80]!r}", err=True)
    if len(made.unread) > SHOWN:
        click.echo(f"dbdyno: and {len(made.unread) - SHOWN} lines more", err=True)
    click.echo(f"next: dbdyno cells diff BEFORE {made.run.path}", err=True)
    if made.unread or made.refused:
        raise click.exceptions.Exit(2)
