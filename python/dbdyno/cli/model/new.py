"""`dbdyno model new`: write a machine file to start from."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.errors import ModelError
from dbdyno.cli.output import write_text
from dbdyno.cli.parameters import FILE, option_with_default


@click.command("new")
@click.argument("path", type=FILE, metavar="FILE.toml")
@option_with_default("--like", default="sas-and-flash", metavar="NAME|FILE", help="Machine to start from.")
def command(path: Path, like: str) -> None:
    """Write a machine as FILE.toml, with the parameters that it leaves at their default as comments.

    \b
    dbdyno model new my.toml --like sas-and-flash
    dbdyno model check my.toml
    dbdyno run redo-size --target model:./my.toml
    """
    from dbdyno.model.describe import commented_text

    if path.suffix != ".toml":
        raise ModelError(
            "is not a valid name of a machine file",
            where=str(path),
            next_step=f"name the file {path.stem or 'my'}.toml",
        )
    if path.exists():
        raise ModelError("already exists", where=str(path), next_step="choose another name")
    write_text(path, commented_text(like))
    click.echo(f"{path}: like {like}; change it, then `dbdyno model check {path}`", err=True)
